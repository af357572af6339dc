// Topology and Host: the two component kinds that together describe a cluster. Any host kind in any fabric:
// the host builds what is inside an atom and offers NICs; the topology joins the NICs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/topology/graph.h"
#include "sim/topology/routes.h"

namespace netsim {

// One accelerator: where its messages start and end.
struct Gpu {
  NodeId node;          // its node in the graph
  std::uint32_t host;   // host number
  std::uint32_t local;  // number within the host
  NodeId nic;           // the NIC that it uses; equal to `node` for hosts without PCIe (single_nic)
};

struct HostBuild {
  std::vector<Gpu> gpus;
  std::vector<NodeId> nics;  // in the order in which they are joined to the fabric's host ports
};

class Host {
 public:
  static constexpr const char* kComponentKind = "host";
  virtual ~Host() = default;
  virtual std::uint32_t gpus() const = 0;
  virtual std::uint32_t nics() const = 0;
  // Adds one host (one atom) to the graph. `numbers`: what the file of the fabric calls the host ports of its
  // NICs, for their names; empty: it calls them nothing.
  virtual HostBuild build(Graph& graph, std::uint32_t host_index,
                          std::span<const std::uint32_t> numbers) const = 0;
  // Its NICs ask for an acknowledgement at least every so many packets of a queue pair, a power of two,
  // unless the configuration says otherwise (transport.acknowledge).
  virtual std::int64_t acknowledge_every() const = 0;
  // The compute model that its accelerators use unless the configuration says otherwise: "a100_80gb", ...; ""
  // = none.
  virtual std::string gpu_model() const = 0;
};

// A NIC as the fabric that joins it sees it.
struct HostPort {
  NodeId nic;
  std::uint32_t host;  // host number
  std::uint32_t rail;  // which of its host's NICs it is
};

class Topology {
 public:
  static constexpr const char* kComponentKind = "topology";
  virtual ~Topology() = default;
  // How many NICs it can join.
  virtual std::uint32_t host_ports() const = 0;
  // What the file or list that describes the fabric calls its hosts, by host port; empty: no file does.
  virtual std::vector<std::uint32_t> host_numbers() const { return {}; }
  // Adds switches and links; nics[i] is at host port i. nics.size() <= host_ports().
  virtual std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const = 0;
};

// A whole cluster, as built from the sections `topology`, `host` and `hosts` of the configuration.
struct Cluster {
  Graph graph;
  std::unique_ptr<Routes> routes;
  std::vector<Gpu> gpus;       // global numbering: host-major, then local
  std::vector<HostPort> nics;  // global numbering: host port order
  std::uint32_t host_count = 0;
  std::vector<std::uint32_t> host_numbers;  // Topology::host_numbers
  std::string gpu_model;
  std::int64_t acknowledge_every = 1;  // Host::acknowledge_every
  bool same_host(std::uint32_t gpu_a, std::uint32_t gpu_b) const {
    return gpus[gpu_a].host == gpus[gpu_b].host;
  }
};

// `root` is the whole configuration; reads `topology` (required), `host` (default single_nic) and `hosts`
// (how many; default: as many as the topology's host ports hold). ConfigError where they do not fit.
Cluster build_cluster(const ConfigNode& root);

// Equal-cost shortest-path next hops for any graph, by breadth-first search from every NIC's switch: for
// topologies without arithmetic of their own, and for any while links are down (`down`: by port; empty: none
// is). Where links that are down leave no way, next_hops() of a switch is empty.
std::unique_ptr<Routes> shortest_path_routes(const Graph& graph, std::span<const HostPort> nics,
                                             const std::vector<bool>& down = {});

}  // namespace netsim
