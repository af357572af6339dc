#include "sim/scheduling/flow/flow_ports.h"

#include <algorithm>

namespace netsim {
namespace {

constexpr std::size_t kMostHops = 1024;  // ends the walk where routes lead nowhere

}  // namespace

FlowPorts::FlowPorts(const Cluster& cluster) : cluster_(cluster) {
  for (PortId port = 0; port < cluster.graph.port_count(); ++port)
    rates_.push_back(cluster.graph.port(port).link.rate);
}

std::span<const PortId> FlowPorts::between(GpuId source, GpuId destination, std::uint32_t lane) {
  const Cluster::NicEnds ends = cluster_.nic_ends(source, destination, lane);
  const auto [entry, added] = known_.try_emplace({ends.from.nic, ends.to.nic});
  if (added) entry->second = walk(ends.from.nic, ends.to.nic);
  return entry->second;
}

std::vector<PortId> FlowPorts::path_or_common(std::vector<PortId> path, GpuId source, GpuId destination,
                                              std::uint32_t lane) {
  if (!path.empty()) return path;
  const std::span<const PortId> common = between(source, destination, lane);
  return {common.begin(), common.end()};
}

// Follows all next hops at once. A port belongs to the result if it is the only one of its hop.
std::vector<PortId> FlowPorts::walk(NodeId from, NodeId to) const {
  const Graph& graph = cluster_.graph;
  std::vector<PortId> ports, hop;
  std::vector<NodeId> nodes{from}, next;
  for (std::size_t hops = 0; hops < kMostHops && !nodes.empty() && nodes != std::vector<NodeId>{to}; ++hops) {
    hop.clear();
    next.clear();
    for (const NodeId node : nodes) {
      if (node == to) continue;
      for (const PortId port : cluster_.routes->next_hops(node, to)) {
        hop.push_back(port);
        next.push_back(graph.port(port).peer_node);
      }
    }
    if (hop.size() == 1) ports.push_back(hop.front());
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    nodes.swap(next);
  }
  return ports;
}

}  // namespace netsim
