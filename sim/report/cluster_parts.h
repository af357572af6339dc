// ClusterParts: the parts of a cluster that a drawing shows: hosts, the switches that hosts use, rails, pods
// and classes of links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/topology/topology.h"

namespace netsim {

// LinkClass: links of one kind and rate. If the directions differ, it is the higher rate.
struct LinkClass {
  LinkKind kind;
  BitRate rate;
  auto operator<=>(const LinkClass&) const = default;
};

class ClusterParts {
 public:
  explicit ClusterParts(const Cluster& cluster);

  const Graph& graph() const { return cluster_.graph; }
  // Returns the host of a node, or kNoId for a switch outside of hosts.
  std::uint32_t host_of(NodeId id) const { return host_of_atom_[graph().node(id).atom]; }
  const std::vector<NodeId>& nodes_of(std::uint32_t host) const { return nodes_of_host_[host]; }
  std::string host_name(std::uint32_t host) const;
  // Returns whether a link is part of a host. Links between routers of one host are not, because each router
  // is drawn.
  bool is_inside_host(PortId port) const;

  // Returns the switches of the fabrics that hosts use, in the order of the graph. A switch is used if a host
  // reaches it by going up, unless it has only one used neighbour, where nothing can pass.
  const std::vector<NodeId>& switches() const { return switches_; }
  std::size_t unused_switches() const { return unused_; }
  // Returns the first of them, at most `most`. Adds a note if there are more.
  std::vector<NodeId> first_switches(std::size_t most, std::vector<std::string>& notes) const;
  // Returns the index of a switch's fabric. A fabric without packets comes after those with packets.
  std::size_t fabric_of(NodeId id) const { return fabric_of_.at(id); }
  // Returns whether a host has its router drawn for it: a switch in the host's atom.
  bool has_router(std::uint32_t host) const { return has_router_[host]; }
  // Returns, by host, the switches that its ports are joined to, with routers of its own left out.
  const std::vector<std::vector<NodeId>>& switches_of_hosts() const { return joined_; }

  // Returns the hosts that are drawn as boxes beside a switch, by the first switch that they are joined to.
  std::map<NodeId, std::vector<std::uint32_t>> hosts_by_switch() const;

  // Layout: how the switches are arranged. They are where the topology puts them (Graph::draw_at), on a cycle
  // if there are several of one tier, and otherwise in rows by tier.
  enum class Layout : std::uint8_t { places, cycle, tiers };
  Layout layout() const;

  // Returns the rail of a switch or a NIC, or kNoId. A fabric has rails if each of its switches next to hosts
  // has ports of one rail only, and there are several. Switches above belong to the rail of all below.
  std::uint32_t rail_of(NodeId id) const {
    const auto found = rail_of_.find(id);
    return found == rail_of_.end() ? kNoId : found->second;
  }
  std::uint32_t rails() const { return rails_; }  // 0: no fabric has rails

  // Returns the classes of all links, those of packet fabrics first.
  const std::vector<LinkClass>& link_classes() const { return classes_; }
  std::size_t class_of(PortId port) const;

  // Returns the pods of the first fabric by switch: the parts that remain connected without its top tier. It
  // is empty unless there are several, with equally many switches in each tier.
  const std::map<NodeId, std::size_t>& pods() const { return pod_of_; }
  std::size_t pod_count() const { return pods_; }

 private:
  void find_hosts();
  void find_switches();
  void leave_out_unused(const std::vector<NodeId>& all);
  void find_rails();
  void find_rails_above(const std::vector<NodeId>& by_tier);
  void find_classes();
  void find_pods();
  LinkClass link_class(PortId port) const;

  const Cluster& cluster_;
  std::vector<std::uint32_t> host_of_atom_;  // kNoId: the atom of a switch
  std::vector<std::vector<NodeId>> nodes_of_host_;
  std::vector<std::vector<NodeId>> joined_;  // by host
  std::vector<bool> has_router_;             // by host
  std::vector<NodeId> switches_;
  std::size_t unused_ = 0;
  std::map<NodeId, std::size_t> fabric_of_;
  std::map<NodeId, std::uint32_t> rail_of_;
  std::uint32_t rails_ = 0;
  std::vector<LinkClass> classes_;
  std::map<NodeId, std::size_t> pod_of_;
  std::size_t pods_ = 0;
};

// BoxIndex: the box of a drawing in which a switch or a host is drawn, by the number of the box.
class BoxIndex {
 public:
  // `parts` must outlive this.
  explicit BoxIndex(const ClusterParts& parts) : parts_(parts) {}
  // A host with routers of its own is drawn as these. Its NICs are at the first.
  void add_switch(NodeId id, std::size_t box);
  void add_host(std::uint32_t host, std::size_t box) { of_host_[host] = box; }
  // Returns the box of a switch, or of the host that holds the node. It is empty if neither is drawn.
  std::optional<std::size_t> box_of(NodeId id) const;

 private:
  const ClusterParts& parts_;
  std::map<NodeId, std::size_t> of_switch_;
  std::map<std::uint32_t, std::size_t> of_host_;
};

}  // namespace netsim
