// DescribedCluster: a whole cluster as a file describes it, node by node: hosts with their insides, switches,
// links. InfraGraph documents and SimAI's topologies are read into it; described_fabric() and
// described_host() make of it what netsim builds clusters of.
//
// - A unit with xpus is a host, any other a switch, whatever it consists of. Units that nothing joins to
//   others are left out where other hosts are joined: spares.
// - What a host's links to other units end at are its host ports, a NIC for each such link: the node itself
//   where it has one link, else nodes behind it. Links that end at an xpu have their NIC behind PCIe that
//   takes no time, because the file has none.
// - NVLinks (links that scale up) are those between xpus and switches that carry them. Switches with links to
//   the same xpus are one stage, because every transfer is spread over all of them (host_links.h).
// - NVSwitches copy and add up (NVLS) where the file says of all xpus of the host that they are Hopper's or
//   later.
// - Xpus that are joined to xpus of other hosts, or in their own host over more than one xpu between them, as
//   in a torus, pass on the packets of others: a router stands at each, and their links are the fabric's.
//   Nothing else of such a host is built.
// - Hosts of the same description that are linked alike are one kind of host. Host ports are in the order of
//   kinds, of hosts of a kind, and of the nodes of a host. Hosts, and xpus in them, are in the order of their
//   ranks where the file gives ranks, else of the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/topology/files/link_list.h"
#include "sim/topology/host_links.h"
#include "sim/topology/topology.h"

namespace netsim {

struct DescribedCluster {
  enum class Kind : std::uint8_t { xpu, cpu, nic, network_switch, other };
  struct Node {
    Kind kind = Kind::other;
    std::string name;  // of the whole cluster's
    std::uint32_t unit = 0;
    std::int64_t rank = -1;  // of an xpu, where the file gives it
    // Compute capability of an xpu as NCCL writes it (`sm`: 90 for 9.0), and the rate of a NIC; 0: the file
    // does not say.
    std::int64_t compute_capability = 0;
    BitRate nic_rate = 0;
  };
  struct Link {
    std::uint32_t a = 0, b = 0;  // nodes
    bool scale_up = false;
    std::optional<BitRate> rate;      // usable, each way
    std::optional<BitRate> together;  // of all links of an xpu that have it, which share it alike
    std::optional<Time> delay;
    Place place;
  };
  // Nodes in a row that stand in one place: a host, a switch.
  struct Unit {
    std::string name;
    std::string kind;  // what the file calls its description
    std::uint32_t first = 0, nodes = 0;
  };
  std::string file;
  std::vector<Unit> units;
  std::vector<Node> nodes;
  std::vector<Link> links;  // between two nodes at most one
};

// Hosts of one kind. Nodes are counted from a unit's first one.
struct DescribedHosts {
  struct Port {
    std::uint32_t node;
    std::uint32_t number;  // of its link, among those of the node that leave the unit
    auto operator<=>(const Port&) const = default;
  };
  std::vector<std::uint32_t> units;
  std::vector<std::uint32_t> xpus;  // in the order of local numbers
  std::vector<Port> ports;          // in the order of rails
  bool routers = false;             // the xpus pass on the packets of others; ports are the xpus
};

// InputError where there is no host, and where a host cannot send to another one.
std::vector<DescribedHosts> hosts_of(const DescribedCluster& cluster);

// The fabric between the hosts, with shortest ways. `absent`: the figures of links that the file has none of.
// ConfigError at `where` for channels that it cannot have (check_channels()).
std::unique_ptr<Topology> described_fabric(const DescribedCluster& cluster, const LinkSpec& absent,
                                           const ChannelParameters& channels, const ConfigNode& where);

// What the insides of hosts have that no file says. nvlink_rate: usable, of a GPU's NVLinks together.
struct DescribedHostParameters : NvlinkParameters, PcieTreeParameters {
  std::string file;
  std::string device, instance;  // which of several kinds of hosts: Unit::kind, or any Unit::name; "": any
};

// One kind of the cluster's hosts. ConfigError at `where` where `device` and `instance` leave none or
// several.
std::unique_ptr<Host> described_host(DescribedCluster cluster, const DescribedHostParameters& p,
                                     const ConfigNode& where);

}  // namespace netsim
