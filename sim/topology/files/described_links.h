// DescribedLinks: the links of each node of a described cluster, with queries about them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "sim/topology/files/described_cluster.h"

namespace netsim {

class DescribedLinks {
 public:
  using Link = DescribedCluster::Link;

  // `cluster` must outlive this.
  explicit DescribedLinks(const DescribedCluster& cluster);

  const std::vector<const Link*>& of(std::uint32_t node) const { return of_[node]; }
  // Returns the other end of a link of `node`.
  static std::uint32_t peer(const Link& link, std::uint32_t node) { return link.a == node ? link.b : link.a; }
  // Returns whether the link joins two units.
  bool leaves(const Link& link) const { return cluster_.nodes[link.a].unit != cluster_.nodes[link.b].unit; }
  // Returns the number of a node's links to other units.
  std::uint32_t leaving(std::uint32_t node) const;
  bool is_xpu(std::uint32_t node) const { return cluster_.nodes[node].kind == DescribedCluster::Kind::xpu; }
  bool joins_xpus(const Link& link) const { return is_xpu(link.a) && is_xpu(link.b); }
  // Returns whether the node is a switch of a host with NVLinks.
  bool is_nvswitch(std::uint32_t node) const;
  // Returns the rate of an NVLink where the file gives it: its own rate, or its share of the total rate of
  // the xpu's links.
  std::optional<BitRate> nvlink_rate(const Link& link) const;
  // Returns the link's share of `together`, the total rate of an xpu's NVLinks without a rate of their own.
  BitRate share(const Link& link, BitRate together) const;
  // Returns the xpus of its unit that NVLinks join to this one, directly or over switches, and the xpu
  // itself.
  std::set<std::uint32_t> near(std::uint32_t xpu) const;

 private:
  const DescribedCluster& cluster_;
  std::vector<std::vector<const Link*>> of_;  // by node
};

}  // namespace netsim
