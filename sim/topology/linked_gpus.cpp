#include "sim/topology/linked_gpus.h"

#include <algorithm>
#include <map>

namespace netsim {

std::vector<std::vector<GpuId>> linked_gpus(const Cluster& cluster) {
  const Graph& graph = cluster.graph;
  std::map<NodeId, std::vector<GpuId>> gpus_at;  // by fabric switch
  for (GpuId gpu = 0; gpu < cluster.gpus.size(); ++gpu) {
    if (cluster.gpus[gpu].nic == kNoId) continue;
    for (const PortId port : graph.ports_of(cluster.gpus[gpu].nic)) {
      if (is_switch(graph, graph.port(port).peer_node)) gpus_at[graph.port(port).peer_node].push_back(gpu);
    }
  }
  std::vector<std::vector<GpuId>> linked(cluster.gpus.size());
  const std::vector<bool> down = graph.circuits_down();
  for (const auto& [at, gpus] : gpus_at) {
    if (gpus.size() != 1) continue;
    std::vector<GpuId>& there = linked[gpus.front()];
    for (const PortId port : graph.ports_of(at)) {
      const auto next = gpus_at.find(graph.port(port).peer_node);
      if (next == gpus_at.end() || next->second.size() != 1 || (!down.empty() && down[port])) continue;
      there.push_back(next->second.front());
    }
    std::sort(there.begin(), there.end());
    there.erase(std::unique(there.begin(), there.end()), there.end());
  }
  return linked;
}

}  // namespace netsim
