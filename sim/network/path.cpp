#include "sim/network/path.h"

#include <algorithm>
#include <deque>
#include <map>

#include "sim/core/errors.h"
#include "sim/core/random.h"

namespace netsim {
namespace {

PortId port_between(const Graph& graph, NodeId from, NodeId to) {
  for (PortId port : graph.ports_of(from)) {
    if (graph.port(port).peer_node == to) return port;
  }
  NETSIM_CHECK(false, "no link from " + graph.node(from).name + " to " + graph.node(to).name);
}

}  // namespace

std::vector<PortId> nic_path(const Cluster& cluster, NodeId from, NodeId to, const RoutingPolicy& policy,
                             std::uint64_t flow, std::uint64_t seed) {
  std::vector<PortId> path;
  const std::size_t limit = cluster.graph.node_count();
  for (NodeId at = from; at != to;) {
    const auto hops = cluster.routes->next_hops(at, to);
    NETSIM_CHECK(!hops.empty() && path.size() < limit, "no route from " + cluster.graph.node(at).name);
    const auto count = static_cast<std::uint32_t>(hops.size());
    const PortId port = hops[count == 1 ? 0 : policy.choose(flow, hash_combine(seed, at), count)];
    path.push_back(port);
    at = cluster.graph.port(port).peer_node;
  }
  return path;
}

std::vector<PortId> scale_out_path(const Cluster& cluster, const Gpu& source, const Gpu& destination,
                                   const RoutingPolicy& policy, std::uint64_t flow, std::uint64_t seed) {
  std::vector<PortId> path;
  if (source.node != source.nic) path.push_back(port_between(cluster.graph, source.node, source.nic));
  for (PortId port : nic_path(cluster, source.nic, destination.nic, policy, flow, seed)) path.push_back(port);
  if (destination.node != destination.nic) {
    path.push_back(port_between(cluster.graph, destination.nic, destination.node));
  }
  return path;
}

std::vector<PortId> scale_up_path(const Graph& graph, NodeId from, NodeId to) {
  std::map<NodeId, PortId> reached;  // by which port
  std::deque<NodeId> frontier{from};
  while (!frontier.empty() && !reached.contains(to)) {
    const NodeId at = frontier.front();
    frontier.pop_front();
    for (PortId port : graph.ports_of(at)) {
      const NodeId next = graph.port(port).peer_node;
      if (graph.port(port).link.kind != LinkKind::nvlink || next == from || reached.contains(next)) continue;
      reached[next] = port;
      frontier.push_back(next);
    }
  }
  std::vector<PortId> path;
  if (!reached.contains(to)) return path;
  for (NodeId at = to; at != from; at = graph.port(path.back()).node) path.push_back(reached[at]);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace netsim
