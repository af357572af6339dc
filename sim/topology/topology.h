// Topology and Host: the two component kinds that together describe a cluster. Any host kind in any fabric:
// the host builds what is inside an atom and offers NICs; the topology joins the NICs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/topology/graph.h"
#include "sim/topology/host_ways.h"
#include "sim/topology/routes.h"

namespace netsim {

// One accelerator: where its messages start and end.
struct Gpu {
  NodeId node;          // its node in the graph
  std::uint32_t host;   // host number
  std::uint32_t local;  // number within the host
  NodeId nic;  // the NIC that it uses by default (nearest_nics() has all); `node` if it is one, or has none
  std::uint32_t domain = kNoId;  // GPUs of one number are joined by a scale-up fabric beyond their hosts
};

// What a host has for one fabric.
struct HostFabric {
  std::string name;     // of the fabric, as in the configuration's `fabrics`
  std::uint32_t ports;  // so many host ports of it
};

// The fabric that NICs go to, and the one that the short form `topology` describes.
inline constexpr const char* kScaleOut = "scale_out";
// The one that the NICs go to which hosts have for storage.
inline constexpr const char* kStorage = "storage";

struct HostBuild {
  std::vector<NodeId> gpus;  // by local number
  // By Host::fabrics(): the nodes that it joins, in the order of its host ports: NICs, or where GPUs have
  // links of their own into it, GPUs. A NIC of several ports is a node for each, behind a PCIe switch.
  std::vector<std::vector<NodeId>> ports;
  // By port of the first fabric: the most that its NIC sends or receives; 0, or empty: what its link carries.
  std::vector<BitRate> nic_rates;
};

class Host {
 public:
  static constexpr const char* kComponentKind = "host";
  virtual ~Host() = default;
  virtual std::uint32_t gpus() const = 0;
  // The fabrics that it has ports for, the nearest first.
  virtual std::vector<HostFabric> fabrics() const = 0;
  // Adds one host (one atom) to the graph: its GPUs and NICs and what lies between them, as links;
  // host_ways.h finds the ways. The same nodes and links in the same order each time. `numbers`: what the
  // file of the first fabric calls its host ports, for the names of NICs; empty: it calls them nothing.
  virtual HostBuild build(Graph& graph, std::uint32_t host_index,
                          std::span<const std::uint32_t> numbers) const = 0;
  // Its NICs ask for an acknowledgement at least every so many packets of a queue pair, a power of two,
  // unless the configuration says otherwise (transport.acknowledge).
  virtual std::int64_t acknowledge_every() const = 0;
  // The compute model that its accelerators use unless the configuration says otherwise: "a100_80gb", ...; ""
  // = none.
  virtual std::string gpu_model() const = 0;
  // Returns the least compute capability of its GPUs as NCCL writes it (`sm`: 90 for 9.0). It is 0 where the
  // host does not say it or names a model.
  virtual std::int64_t compute_capability() const { return 0; }
  // Returns notes for the results: what its description says that has no effect.
  virtual std::vector<std::string> notes() const { return {}; }
};

// A NIC (or what else has the port) as the fabric that joins it sees it.
struct HostPort {
  NodeId nic;
  std::uint32_t host;  // host number
  std::uint32_t rail;  // which of its host's NICs it is
};

class Topology {
 public:
  static constexpr const char* kComponentKind = "topology";
  virtual ~Topology() = default;
  // How many NICs, or GPUs, it can join.
  virtual std::uint32_t host_ports() const = 0;
  // Whether it joins GPUs rather than NICs: its links are NVLinks into switches of the kind scale_up_switch.
  virtual bool scale_up() const { return false; }
  // What the file or list that describes the fabric calls its hosts, by host port; empty: no file does.
  virtual std::vector<std::uint32_t> host_numbers() const { return {}; }
  // Where the file describes the hosts as well and says which rank runs on which GPU: by number of the GPU
  // when all hosts of the file are there, in its order; -1: none on this one. Empty: it says nothing.
  virtual std::vector<std::int64_t> gpu_ranks() const { return {}; }
  // Adds switches and links; nics[i] is at host port i. nics.size() <= host_ports().
  virtual std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const = 0;
  // Returns notes for the results: what its file says that has no effect.
  virtual std::vector<std::string> notes() const { return {}; }
};

// Hosts of one kind with the same parameters: what is known of them once for all.
struct HostGroup {
  std::string kind;
  std::string gpu_model;               // Host::gpu_model
  std::int64_t acknowledge_every = 1;  // Host::acknowledge_every
  std::uint32_t gpus = 0;              // of a host
  std::uint32_t hosts = 0;
  std::vector<std::uint32_t> fabrics;  // by Host::fabrics(): which of the cluster's
  HostWays ways;
  std::int64_t compute_capability = 0;  // Host::compute_capability
};

struct HostPlace {
  std::uint32_t group;
  NodeId first_node;
  PortId first_port;
};

// One fabric of a cluster.
struct ClusterFabric {
  std::string name;
  bool scale_up = false;                    // Topology::scale_up
  std::vector<HostPort> ports;              // in host port order
  NodeId first_switch = 0, end_switch = 0;  // its switches: the nodes from the one up to before the other
};

// What carries messages from one GPU to another, the nearest first.
enum class WayKind : std::uint8_t {
  nvlink,         // links and switches of their host, or another GPU of it
  nvlink_fabric,  // a scale-up fabric beyond the hosts
  pcie,           // PCIe switches and CPUs of their host
  packets,        // NICs and a packet fabric; before PCIe where the two are host ports of it themselves
};
// Whether messages travel in pieces, without headers and acknowledgements.
constexpr bool is_scale_up(WayKind kind) { return kind != WayKind::packets; }

// A whole cluster, as built from the sections `topology` or `fabrics`, `host` and `hosts` of the
// configuration.
struct Cluster {
  Graph graph;
  std::unique_ptr<Routes> routes;  // of all fabrics: a destination is in one of them
  std::vector<Gpu> gpus;           // global numbering: host-major, then local
  std::vector<HostPort> nics;      // of all packet fabrics, one after the other, in host port order
  std::vector<ClusterFabric> fabrics;
  std::vector<HostGroup> groups;
  std::vector<HostPlace> hosts;
  std::uint32_t host_count = 0;
  std::vector<std::uint32_t> host_numbers;  // Topology::host_numbers of the first packet fabric
  // Groups of hosts that fabrics join, directly or by way of other groups, are an island. By group; GPUs and
  // what graph.node_number() numbers are counted from 0 in each, so that jobs on different islands take the
  // times that they take alone.
  std::vector<std::uint32_t> island_of_group;
  std::vector<std::uint32_t> gpu_numbers;  // empty: there is one island only

  std::vector<std::int64_t> gpu_ranks;  // Topology::gpu_ranks of the first packet fabric
  std::vector<std::string> notes;       // for the results: what of the description does not act, and why

  std::uint32_t gpu_number(std::uint32_t gpu) const { return gpu_numbers.empty() ? gpu : gpu_numbers[gpu]; }

  bool same_host(std::uint32_t gpu_a, std::uint32_t gpu_b) const {
    return gpus[gpu_a].host == gpus[gpu_b].host;
  }
  const HostGroup& group_of(std::uint32_t gpu) const { return groups[hosts[gpus[gpu].host].group]; }
  // From a GPU to another one; from a GPU to itself stands for the way to its host's memory, which is pcie.
  WayKind way(std::uint32_t from, std::uint32_t to) const;
  // The way within their host, for WayKind::nvlink and pcie. From a GPU to itself: to its nearest CPU; empty
  // where its host has none.
  std::vector<PortId> way_inside(std::uint32_t from, std::uint32_t to) const;

  // One end of a path of packets: the NIC, and the ports from the GPU to it (none if the GPU is its own NIC).
  // Packets to a receiver take the reverse of its ports.
  struct NicEnd {
    NodeId nic;
    std::vector<PortId> ports;
  };
  struct NicEnds {
    NicEnd from, to;
  };
  // The ends of a way in the packet fabric that joins two GPUs. Each takes one of its nearest NICs by the
  // message's `lane`: all of them are used by lanes in a row. Where the fabric does not join the two, as
  // between rails, the sender takes the nearest of its host that is joined to the receiver's, over NVLink and
  // another GPU where need be, as NCCL does (PXN, since 2.12); else another NIC of the receiver's.
  // ConfigError, which names both GPUs, where no fabric joins them.
  NicEnds nic_ends(std::uint32_t from, std::uint32_t to, std::uint32_t lane) const;
  // Which fabric carries messages between two GPUs whose way is WayKind::packets, in either direction: the
  // first of those that the host of the GPU with the lower number goes to, which the other one's goes to,
  // too. ConfigError, which names both, where no fabric joins them.
  std::uint32_t packet_fabric(std::uint32_t from, std::uint32_t to) const;
  // Fabrics that are not scale-up, in order.
  std::vector<std::string> packet_fabric_names() const;
  // The NICs that are equally near to a GPU, the nearest ones of the first packet fabric that its host goes
  // to; empty without such a fabric.
  std::vector<NodeId> nearest_nics(std::uint32_t gpu) const;
  // Links from the GPU to those; 0: there are none, or it is its own NIC.
  std::uint32_t links_to_nic(std::uint32_t gpu) const;
  // Of the NVLinks between two different GPUs of a host, without a switch; 0: there are none.
  BitRate direct_rate(std::uint32_t from, std::uint32_t to) const;
  // Of the links between two GPUs whose way is not WayKind::packets: those of their host, or into a scale-up
  // fabric and out of it.
  Time delay_inside(std::uint32_t from, std::uint32_t to) const;
  // Of a GPU's NVLinks together, or of its PCIe link if it has none; of a NIC's links to its fabric together.
  BitRate local_rate(std::uint32_t gpu) const;
  BitRate nic_rate(NodeId nic) const;
  // Whether a link joins the GPU with a CPU, without a PCIe switch between.
  bool is_beside_cpu(std::uint32_t gpu) const;

 private:
  // Whether the GPU is a host port itself.
  bool is_port(std::uint32_t gpu) const;
  [[noreturn]] void not_joined(std::uint32_t from, std::uint32_t to) const;
  // The GPU's NICs in that fabric, the nearest first, and how many are equally near.
  std::pair<std::span<const HostWays::NicWay>, std::uint32_t> nic_ways(std::uint32_t gpu,
                                                                       std::uint32_t fabric) const;
  // Returns nic_ways() of the first packet fabric that the GPU's host is joined to, or nothing without one.
  std::pair<std::span<const HostWays::NicWay>, std::uint32_t> first_nic_ways(std::uint32_t gpu) const;
  NicEnd sending_end(std::uint32_t gpu, const HostWays::NicWay& way) const;
  NicEnd receiving_end(std::uint32_t gpu, const HostWays::NicWay& way) const;
  NicEnd nic_end(std::uint32_t gpu, NodeId nic, const std::vector<PortId>& ports) const;
  NicEnds ends_elsewhere(std::uint32_t from, std::uint32_t to, std::uint32_t fabric,
                         std::uint32_t lane) const;
  bool joins(NodeId from, NodeId to) const;
};

// `root` is the whole configuration; reads `topology` or `fabrics` (one of them is required), `host` and
// `hosts`: a kind (default single_nic) and how many (default: as many as the fabrics' host ports hold), or a
// list of groups. ConfigError where they do not fit.
Cluster build_cluster(const ConfigNode& root);

// Equal-cost shortest-path next hops for any graph, by breadth-first search from every NIC's switch: for
// topologies without arithmetic of their own, and for any while links are down (`down`: by port; empty: none
// is). Where links that are down leave no way, next_hops() of a switch is empty.
std::unique_ptr<Routes> shortest_path_routes(const Graph& graph, std::span<const HostPort> nics,
                                             const std::vector<bool>& down = {});

}  // namespace netsim
