// Topology and Host: the two component kinds that together describe a cluster. Any host kind works in any
// fabric: the host builds everything inside an atom and offers NICs, and the topology joins the NICs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/topology/graph.h"
#include "sim/topology/host_routes.h"
#include "sim/topology/routes.h"

namespace netsim {

// One accelerator. Messages start and end there.
struct Gpu {
  NodeId node;          // its node in the graph
  std::uint32_t host;   // host number
  std::uint32_t local;  // number within the host
  // The default NIC; nearest_nics() returns all of them. It equals `node` where the GPU is a NIC itself or
  // has none.
  NodeId nic;
  std::uint32_t domain = kNoId;  // scale-up fabric beyond the hosts; GPUs of one domain are joined by it
};

// The host ports that a host has for one fabric.
struct HostFabric {
  std::string name;     // as in the configuration's `fabrics`
  std::uint32_t ports;  // number of host ports for it
};

// Name of the fabric that NICs are joined to, and of the one that the short form `topology` describes.
inline constexpr const char* kScaleOut = "scale_out";
// Name of the fabric that storage NICs of hosts are joined to.
inline constexpr const char* kStorage = "storage";

struct HostBuild {
  std::vector<NodeId> gpus;  // by local number
  // By Host::fabrics(): the nodes that the fabric joins, in host port order. They are NICs, or GPUs where
  // GPUs have links of their own into the fabric. A NIC with several ports is a node for each port, behind a
  // PCIe switch.
  std::vector<std::vector<NodeId>> ports;
  // By port of the first fabric: the highest rate at which its NIC sends or receives. 0 or empty: the rate of
  // its link.
  std::vector<BitRate> nic_rates;
};

// HostRole: what the end points of a host are. A storage server has one end point, which stands for its
// drives; placements and compute models leave it out.
enum class HostRole : std::uint8_t { compute, storage };

class Host {
 public:
  static constexpr const char* kComponentKind = "host";
  virtual ~Host() = default;
  virtual HostRole role() const { return HostRole::compute; }
  virtual std::uint32_t gpus() const = 0;
  // Returns the fabrics that it has ports for, the nearest first.
  virtual std::vector<HostFabric> fabrics() const = 0;
  // Adds one host (one atom) to the graph: its GPUs, its NICs and the nodes and links between them.
  // host_routes.h finds the routes inside. Every call adds the same nodes and links in the same order.
  // `numbers` are the numbers of its host ports in the file of the first fabric, for the names of NICs;
  // empty: there are none.
  virtual HostBuild build(Graph& graph, std::uint32_t host_index,
                          std::span<const std::uint32_t> numbers) const = 0;
  // Returns the number of packets of a queue pair after which its NICs request an acknowledgement, a power of
  // two. transport.acknowledge overrides it.
  virtual std::int64_t acknowledge_every() const = 0;
  // Returns the default compute model of its accelerators, such as "a100_80gb"; "": there is none. The
  // configuration may override it.
  virtual std::string gpu_model() const = 0;
  // Returns the least compute capability of its GPUs as NCCL writes it (`sm`: 90 for 9.0). 0: the host does
  // not give it, or names a model.
  virtual std::int64_t compute_capability() const { return 0; }
  // Returns notes for the results about entries of its description that have no effect.
  virtual std::vector<std::string> notes() const { return {}; }
};

// A NIC, or a GPU that is a host port itself, as the fabric that joins it sees it.
struct HostPort {
  NodeId nic;
  std::uint32_t host;  // host number
  std::uint32_t rail;  // its number among the ports that its host has for the fabric
};

class Topology {
 public:
  static constexpr const char* kComponentKind = "topology";
  virtual ~Topology() = default;
  // Returns how many NICs, or GPUs, the fabric can join.
  virtual std::uint32_t host_ports() const = 0;
  // Returns whether it joins GPUs instead of NICs. Then its links are NVLinks into switches of the kind
  // scale_up_switch.
  virtual bool scale_up() const { return false; }
  // Returns, by host port, the host numbers of the file that describes the fabric; empty: no file describes
  // it.
  virtual std::vector<std::uint32_t> host_numbers() const { return {}; }
  // Returns the rank of each GPU where the file also describes the hosts and assigns ranks. GPUs are numbered
  // in the file's order, with all of its hosts present. -1: the GPU has no rank. Empty: the file assigns
  // none.
  virtual std::vector<std::int64_t> gpu_ranks() const { return {}; }
  // Adds switches and links; nics[i] is at host port i. nics.size() must be at most host_ports().
  virtual std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const = 0;
  // Returns notes for the results about entries of its file that have no effect.
  virtual std::vector<std::string> notes() const { return {}; }
};

// Hosts of one kind with the same parameters, and the properties that they share.
struct HostGroup {
  std::string kind;
  HostRole role = HostRole::compute;   // Host::role
  std::string gpu_model;               // Host::gpu_model
  std::int64_t acknowledge_every = 1;  // Host::acknowledge_every
  std::uint32_t gpus = 0;              // GPUs of a host
  std::uint32_t hosts = 0;
  std::vector<std::uint32_t> fabrics;  // by Host::fabrics(): index in Cluster::fabrics
  HostRoutes ways;
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
  bool scale_up = false;        // Topology::scale_up
  std::vector<HostPort> ports;  // in host port order
  // Its switches are the nodes from first_switch to end_switch - 1.
  NodeId first_switch = 0, end_switch = 0;
};

// The links that carry messages from one GPU to another, the nearest first.
enum class HostRouteKind : std::uint8_t {
  nvlink,         // links and switches of their host, or another GPU of it
  nvlink_fabric,  // a scale-up fabric beyond the hosts
  pcie,           // PCIe switches and CPUs of their host
  // NICs and a packet fabric. It comes before PCIe where both GPUs are host ports of the fabric.
  packets,
};
// Returns whether messages travel in pieces without headers and acknowledgements.
constexpr bool is_scale_up(HostRouteKind kind) { return kind != HostRouteKind::packets; }

// A whole cluster, built from the sections `topology` or `fabrics`, `host` and `hosts` of the configuration.
struct Cluster {
  Graph graph;
  std::unique_ptr<Routes> routes;  // routes of all fabrics; a destination is in one of them
  std::vector<Gpu> gpus;           // in global numbering: by host, then by local number
  std::vector<HostPort> nics;  // NICs of all packet fabrics, one fabric after the other, in host port order
  std::vector<ClusterFabric> fabrics;
  std::vector<HostGroup> groups;
  std::vector<HostPlace> hosts;
  std::uint32_t host_count = 0;
  std::vector<std::uint32_t> host_numbers;  // Topology::host_numbers of the first packet fabric
  // Island of each host group. An island is a set of groups that fabrics join, directly or through other
  // groups. GPU numbers and graph.node_number() count from 0 in each island, so that jobs on different
  // islands take the same times as alone.
  std::vector<std::uint32_t> island_of_group;
  std::vector<std::uint32_t> gpu_numbers;  // empty: there is only one island

  std::vector<std::int64_t> gpu_ranks;  // Topology::gpu_ranks of the first packet fabric
  // Notes for the results: parts of the description that have no effect, and why.
  std::vector<std::string> notes;

  std::uint32_t gpu_number(std::uint32_t gpu) const { return gpu_numbers.empty() ? gpu : gpu_numbers[gpu]; }

  bool same_host(std::uint32_t gpu_a, std::uint32_t gpu_b) const {
    return gpus[gpu_a].host == gpus[gpu_b].host;
  }
  const HostGroup& group_of(std::uint32_t gpu) const { return groups[hosts[gpus[gpu].host].group]; }
  // Returns whether the GPU stands for the drives of a storage server.
  bool is_drives(std::uint32_t gpu) const { return group_of(gpu).role == HostRole::storage; }
  // Returns the kind of route between two GPUs. From a GPU to itself means to its host's memory, which is
  // `pcie`.
  HostRouteKind way(std::uint32_t from, std::uint32_t to) const;
  // Returns the ports of a route within the host, for HostRouteKind::nvlink and `pcie`. From a GPU to itself
  // it leads to the nearest CPU; it is empty where the host has none.
  std::vector<PortId> way_inside(std::uint32_t from, std::uint32_t to) const;

  // One end of a packet route: the NIC, and the ports from the GPU to it. `ports` is empty where the GPU is
  // its own NIC. Packets to a receiver take the reverse of its ports.
  struct NicEnd {
    NodeId nic;
    std::vector<PortId> ports;
  };
  struct NicEnds {
    NicEnd from, to;
  };
  // Returns the two ends of a route in the packet fabric that joins two GPUs. Each GPU takes one of its
  // nearest NICs by the message's `lane`; consecutive lanes use all of them in turn.
  // The fabric may not join these two NICs, for example across rails. Then the sender takes the nearest NIC
  // of its host that is joined to the receiver's. It reaches that NIC over NVLink and another GPU where
  // necessary, as NCCL does (PXN, since 2.12). If there is none, another NIC of the receiver is taken.
  // Throws a ConfigError with both GPUs' names where no fabric joins them.
  // A lane of lane_over() takes that NIC of the sender instead, if it is joined to the receiver's. The
  // receiver takes its NIC with the same place in its host, where both hosts are of one group.
  NicEnds nic_ends(std::uint32_t from, std::uint32_t to, std::uint32_t lane) const;
  // Returns how many NICs a sender to `to` can choose from, and the lane that chooses one of them, 0 for the
  // nearest. Lanes of one NIC are told apart by the low bits of `lane`.
  std::uint32_t nic_choices(std::uint32_t from, std::uint32_t to) const;
  static constexpr std::uint32_t lane_over(std::uint32_t nic, std::uint32_t lane) {
    return kFirstChosenLane | nic << kChosenBits | (lane & ((1U << kChosenBits) - 1));
  }
  // Returns the fabric of messages between two GPUs with HostRouteKind::packets, the same in both directions.
  // It is the first fabric of the lower-numbered GPU's host that the other host is joined to as well. Throws
  // a ConfigError with both names where there is none.
  std::uint32_t packet_fabric(std::uint32_t from, std::uint32_t to) const;
  // Returns the names of the packet fabrics, in the order of `fabrics`.
  std::vector<std::string> packet_fabric_names() const;
  // Returns the NICs that are equally near to a GPU and nearest among those of its host's first packet
  // fabric. It is empty without such a fabric.
  std::vector<NodeId> nearest_nics(std::uint32_t gpu) const;
  // Returns the number of links from the GPU to those NICs. 0: there are none, or the GPU is its own NIC.
  std::uint32_t links_to_nic(std::uint32_t gpu) const;
  // Returns the rate of the NVLinks between two different GPUs of a host without a switch. 0: there are none.
  BitRate direct_rate(std::uint32_t from, std::uint32_t to) const;
  // Returns the total delay of the links between two GPUs whose HostRouteKind is not `packets`. They are
  // links of their host, or links into a scale-up fabric and out of it.
  Time delay_inside(std::uint32_t from, std::uint32_t to) const;
  // local_rate() returns the total rate of a GPU's NVLinks, or of its PCIe links if it has none. nic_rate()
  // returns the total rate of a NIC's links to its fabric.
  BitRate local_rate(std::uint32_t gpu) const;
  BitRate nic_rate(NodeId nic) const;
  // Returns whether a link joins the GPU to a CPU without a PCIe switch between them.
  bool is_beside_cpu(std::uint32_t gpu) const;

 private:
  // Lanes from here on choose a NIC. Channels of workloads are smaller.
  static constexpr std::uint32_t kFirstChosenLane = 1U << 31, kChosenBits = 20;

  // Returns whether the GPU is a host port itself.
  bool is_port(std::uint32_t gpu) const;
  [[noreturn]] void not_joined(std::uint32_t from, std::uint32_t to) const;
  // Returns the GPU's NICs in that fabric, the nearest first, and how many of them are equally near.
  std::pair<std::span<const HostRoutes::NicRoute>, std::uint32_t> nic_ways(std::uint32_t gpu,
                                                                           std::uint32_t fabric) const;
  // Returns nic_ways() of the first packet fabric that the GPU's host is joined to, or nothing without one.
  std::pair<std::span<const HostRoutes::NicRoute>, std::uint32_t> first_nic_ways(std::uint32_t gpu) const;
  NicEnd sending_end(std::uint32_t gpu, const HostRoutes::NicRoute& way) const;
  NicEnd receiving_end(std::uint32_t gpu, const HostRoutes::NicRoute& way) const;
  NicEnd nic_end(std::uint32_t gpu, NodeId nic, const std::vector<PortId>& ports) const;
  NicEnds ends_of_choice(std::uint32_t from, std::uint32_t to, std::uint32_t fabric,
                         std::uint32_t lane) const;
  NicEnds ends_elsewhere(std::uint32_t from, std::uint32_t to, std::uint32_t fabric,
                         std::uint32_t lane) const;
  bool joins(NodeId from, NodeId to) const;
};

// Builds the cluster from `root`, the whole configuration. It reads `topology` or `fabrics` (one is
// required), `host`, and `hosts`. `host` is a kind (default single_nic). `hosts` is their number (default: as
// many as the host ports allow), or a list of groups. Throws a ConfigError where they do not fit.
Cluster build_cluster(const ConfigNode& root);

// Returns the equal-cost shortest-path next hops of any graph, by breadth-first search from every NIC's
// switch. It serves topologies without arithmetic of their own, and any topology while links are down. `down`
// holds the ports that are down; empty: none.
// next_hops() of a switch is empty where links that are down leave no route.
std::unique_ptr<Routes> shortest_path_routes(const Graph& graph, std::span<const HostPort> nics,
                                             const std::vector<bool>& down = {});

}  // namespace netsim
