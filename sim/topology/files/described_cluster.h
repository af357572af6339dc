// DescribedCluster: a whole cluster as a file describes it, node by node: hosts with their insides, switches
// and links. InfraGraph documents and SimAI's topologies are read into it. described_fabric() and
// described_host() turn it into components of netsim.
//
// - A unit with xpus is a host; any other unit is a switch, whatever it consists of. Units that nothing joins
//   to others are left out as spares, if other hosts are joined.
// - A host has a host port, and a NIC, for each of its links to other units. The NIC is the node at the
//   link's end if the node has one such link, else a node behind it. Links that end at an xpu have their NIC
//   behind PCIe that takes no time, because the file has no PCIe there.
// - NVLinks (links that scale up) are the links between xpus and the switches that carry them. Switches with
//   links to the same xpus are one stage, because every transfer is spread over all of them (host_links.h).
// - NVSwitches multicast and reduce (NVLS) where the file says that all xpus of the host are Hopper's or
//   later.
// - Xpus may be joined to xpus of other hosts, or in their own host over more than one other xpu, as in a
//   torus. These forward the packets of others: each has a router, and their links belong to the fabric.
//   Nothing else of such a host is built.
// - Hosts with the same description and the same links are one kind of host. Host ports are ordered by kind,
//   by host, and by node of a host. Hosts, and the xpus in them, are ordered by rank where the file assigns
//   ranks, else as in the file.
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
    std::string name;  // unique in the whole cluster
    std::uint32_t unit = 0;
    std::int64_t rank = -1;  // of an xpu; -1: the file assigns none
    // Compute capability of an xpu as NCCL writes it (`sm`: 90 for 9.0), and the rate of a NIC. 0: the file
    // gives none.
    std::int64_t compute_capability = 0;
    BitRate nic_rate = 0;
  };
  struct Link {
    std::uint32_t a = 0, b = 0;  // indices in `nodes`
    bool scale_up = false;
    std::optional<BitRate> rate;      // usable, each way
    std::optional<BitRate> together;  // rate shared equally by all links of an xpu that have it
    std::optional<Time> delay;
    Place place;
  };
  // Consecutive nodes at one location: a host or a switch.
  struct Unit {
    std::string name;
    std::string kind;  // name of its description in the file
    std::uint32_t first = 0, nodes = 0;
  };
  std::string file;
  std::vector<Unit> units;
  std::vector<Node> nodes;
  std::vector<Link> links;  // at most one between two nodes
};

// Hosts of one kind. Nodes are counted from the first node of a unit.
struct DescribedHosts {
  struct Port {
    std::uint32_t node;
    std::uint32_t number;  // number of its link among the node's links that leave the unit
    auto operator<=>(const Port&) const = default;
  };
  std::vector<std::uint32_t> units;
  std::vector<std::uint32_t> xpus;  // in the order of local numbers
  std::vector<Port> ports;          // in the order of rails
  bool routers = false;             // the xpus forward packets of others, and the ports are the xpus
};

// Returns the hosts of the cluster by kind. Throws an InputError where there is no host, or where a host
// cannot send to another one.
std::vector<DescribedHosts> hosts_of(const DescribedCluster& cluster);

// Returns the fabric between the hosts, with shortest routes. `absent` has the values for links that the file
// gives none for. Throws a ConfigError at `where` for invalid channels (check_channels()).
std::unique_ptr<Topology> described_fabric(const DescribedCluster& cluster, const LinkSpec& absent,
                                           const ChannelParameters& channels, const ConfigNode& where);

// Parameters of the insides of hosts that no file gives. nvlink_rate is the usable rate of all NVLinks of a
// GPU.
struct DescribedHostParameters : NvlinkParameters, PcieTreeParameters {
  std::string file;
  // Select one of several kinds of hosts by Unit::kind or by any Unit::name; "": any.
  std::string device, instance;
};

// Returns one kind of the cluster's hosts. Throws a ConfigError at `where` where `device` and `instance`
// select none or several.
std::unique_ptr<Host> described_host(DescribedCluster cluster, const DescribedHostParameters& p,
                                     const ConfigNode& where);

}  // namespace netsim
