#include "sim/network/path.h"

#include <algorithm>

#include "sim/core/errors.h"
#include "sim/core/random.h"

namespace netsim {
namespace {

// The policy's check() has seen to it that there is one.
PortId find_port(const Graph& graph, NodeId from, const std::string& to) {
  for (PortId port : graph.ports_of(from)) {
    if (graph.node(graph.port(port).peer_node).name == to) return port;
  }
  NETSIM_CHECK(false, "no link from " + graph.node(from).name + " to " + to);
}

std::vector<PortId> prescribed_path(const Graph& graph, NodeId from, NodeId to,
                                    const std::vector<std::string>& through) {
  std::vector<PortId> path;
  NodeId at = from;
  for (const std::string& name : through) {
    path.push_back(find_port(graph, at, name));
    at = graph.port(path.back()).peer_node;
  }
  path.push_back(find_port(graph, at, graph.node(to).name));
  return path;
}

}  // namespace

std::vector<PortId> nic_path(const Graph& graph, const Routes& routes, const std::vector<bool>& down,
                             NodeId from, NodeId to, const RoutingPolicy& policy, std::uint64_t flow,
                             std::uint64_t seed) {
  std::vector<PortId> path;
  if (const auto* fixed = policy.fixed_path(graph.node(from).name, graph.node(to).name); fixed != nullptr) {
    path = prescribed_path(graph, from, to, *fixed);
    const bool whole = std::none_of(path.begin(), path.end(), [&](PortId port) { return down[port]; });
    if (whole || !policy.leaves_fixed_path()) return path;
    path.clear();
  }
  const std::size_t limit = graph.node_count();
  for (NodeId at = from; at != to;) {
    const auto hops = routes.next_hops(at, to);
    if (hops.empty()) return {};
    NETSIM_CHECK(path.size() < limit, "routes run in a circle at " + graph.node(at).name);
    const auto count = static_cast<std::uint32_t>(hops.size());
    const PortId port = hops[count == 1 ? 0 : policy.choose(flow, hash_combine(seed, at), count)];
    path.push_back(port);
    at = graph.port(port).peer_node;
  }
  return path;
}

// Of equal ways over a fabric each pair of GPUs keeps to one.
std::vector<PortId> scale_up_path(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
  if (cluster.way(from, to) != WayKind::nvlink_fabric) return cluster.way_inside(from, to);
  std::vector<PortId> path;
  const NodeId end = cluster.gpus[to].node;
  for (NodeId at = cluster.gpus[from].node; at != end; at = cluster.graph.port(path.back()).peer_node) {
    const auto hops = cluster.routes->next_hops(at, end);
    NETSIM_CHECK(!hops.empty() && path.size() < cluster.graph.node_count(),
                 "no way over the scale-up fabric");
    path.push_back(hops[(from + to) % hops.size()]);
  }
  return path;
}

}  // namespace netsim
