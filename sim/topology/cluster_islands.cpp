#include "sim/topology/cluster_islands.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// Returns the island of each node. `island` is by fabric, then by group.
std::vector<std::uint32_t> islands_of_nodes(const Cluster& cluster,
                                            const std::vector<std::uint32_t>& island) {
  const Graph& graph = cluster.graph;
  std::vector<std::uint32_t> of_node(graph.node_count());
  const std::vector<ClusterFabric>& fabrics = cluster.fabrics;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const auto fabric = std::find_if(fabrics.begin(), fabrics.end(), [id](const ClusterFabric& one) {
      return id >= one.first_switch && id < one.end_switch;
    });
    if (fabric != fabrics.end()) {
      of_node[id] = island[static_cast<std::size_t>(fabric - fabrics.begin())];
      continue;
    }
    const auto host =
        std::upper_bound(cluster.hosts.begin(), cluster.hosts.end(), id,
                         [](NodeId node, const HostPlace& place) { return node < place.first_node; });
    of_node[id] = cluster.island_of_group[std::prev(host)->group];
  }
  return of_node;
}

// Numbers nodes, ports and GPUs within their islands. `island` is by fabric, then by group.
void number_in_islands(Cluster& cluster, const std::vector<std::uint32_t>& island) {
  Graph& graph = cluster.graph;
  const std::vector<std::uint32_t> of_node = islands_of_nodes(cluster, island);
  std::vector<std::uint32_t> nodes(island.size(), 0), ports(nodes), gpus(nodes);
  std::vector<std::uint32_t> node_numbers, port_numbers;
  node_numbers.reserve(graph.node_count());
  port_numbers.reserve(graph.port_count());
  for (NodeId id = 0; id < graph.node_count(); ++id) node_numbers.push_back(nodes[of_node[id]]++);
  for (PortId id = 0; id < graph.port_count(); ++id)
    port_numbers.push_back(ports[of_node[graph.port(id).node]]++);
  for (const Gpu& gpu : cluster.gpus) cluster.gpu_numbers.push_back(gpus[of_node[gpu.node]]++);
  graph.set_numbers(std::move(node_numbers), std::move(port_numbers));
}

// Returns whether the GPU has a NIC in each packet fabric of its host, at least in one.
bool has_nics(const Cluster& cluster, const HostGroup& group, std::uint32_t gpu) {
  bool any = false;
  for (std::uint32_t i = 0; i < group.fabrics.size(); ++i) {
    if (cluster.fabrics[group.fabrics[i]].scale_up) continue;
    if (group.ways.nearest(gpu, i) == 0) return false;
    any = true;
  }
  return any;
}

void check_gpu(const Cluster& cluster, const HostGroup& group, const Place& where, std::uint32_t gpu) {
  if (has_nics(cluster, group, gpu)) return;
  const std::string name = "GPU " + std::to_string(gpu) + " of host " + group.kind;
  if (cluster.host_count > 1)
    throw ConfigError(where, name + " has no path to a NIC, but there are other hosts");
  for (std::uint32_t other = 0; other < group.gpus; ++other) {
    if (other == gpu || group.ways.between(gpu, other).kind != HostWayKind::none) continue;
    throw ConfigError(
        where, name + " has no path to GPU " + std::to_string(other) + ": neither NVLink nor PCIe nor a NIC");
  }
}

}  // namespace

std::uint32_t find_domains(Cluster& cluster, const ClusterFabric& fabric, std::uint32_t domain) {
  std::vector<std::uint32_t> gpu_of(cluster.graph.node_count(), kNoId);
  for (std::uint32_t gpu = 0; gpu < cluster.gpus.size(); ++gpu) gpu_of[cluster.gpus[gpu].node] = gpu;
  std::vector<bool> seen(cluster.graph.node_count(), false);
  for (const HostPort& port : fabric.ports) {
    if (seen[port.nic]) continue;
    std::vector<NodeId> reached{port.nic};
    seen[port.nic] = true;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      if (const std::uint32_t gpu = gpu_of[reached[i]]; gpu != kNoId) cluster.gpus[gpu].domain = domain;
      for (const PortId out : cluster.graph.ports_of(reached[i])) {
        const NodeId next = cluster.graph.port(out).peer_node;
        const bool inside =
            cluster.graph.port(out).node >= fabric.first_switch || next >= fabric.first_switch;
        if (!inside || seen[next]) continue;
        seen[next] = true;
        reached.push_back(next);
      }
    }
    ++domain;
  }
  return domain;
}

void find_islands(Cluster& cluster) {
  const std::size_t fabrics = cluster.fabrics.size(), groups = cluster.groups.size();
  std::vector<std::uint32_t> island(fabrics + groups);  // by fabric, then by group
  std::iota(island.begin(), island.end(), 0U);
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < groups; ++i) {
      std::uint32_t& own = island[fabrics + i];
      for (const std::uint32_t fabric : cluster.groups[i].fabrics) own = std::min(own, island[fabric]);
      for (const std::uint32_t fabric : cluster.groups[i].fabrics) {
        more = more || island[fabric] != own;
        island[fabric] = own;
      }
    }
  }
  cluster.island_of_group.assign(island.begin() + static_cast<std::ptrdiff_t>(fabrics), island.end());
  const auto of_first = [&](std::uint32_t one) { return one == cluster.island_of_group.front(); };
  if (!std::all_of(cluster.island_of_group.begin(), cluster.island_of_group.end(), of_first))
    number_in_islands(cluster, island);
}

void check_gpus_joined(const Cluster& cluster, const std::vector<Place>& places) {
  const auto of_first = [&](const Gpu& gpu) {
    return gpu.domain != kNoId && gpu.domain == cluster.gpus.front().domain;
  };
  if (std::all_of(cluster.gpus.begin(), cluster.gpus.end(), of_first)) return;
  for (std::size_t i = 0; i < cluster.groups.size(); ++i) {
    for (std::uint32_t gpu = 0; gpu < cluster.groups[i].gpus; ++gpu)
      check_gpu(cluster, cluster.groups[i], places[i], gpu);
  }
}

}  // namespace netsim
