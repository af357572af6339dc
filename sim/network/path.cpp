#include "sim/network/path.h"

#include <algorithm>
#include <map>
#include <string>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/network/flow_hash.h"
#include "sim/topology/link_names.h"

namespace netsim {
namespace {

// Returns the port of `from` whose link leads to the node `to`. The policy's prepare() has checked that it
// exists.
PortId find_port(const Graph& graph, NodeId from, const std::string& to) {
  const PortId port = port_to(graph, from, to);
  NETSIM_CHECK(port != kNoId, "no link from " + graph.node(from).name + " to " + to);
  return port;
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

// Returns the index of the branch's port that the flow takes. The branch's seed is the fabric's, not yet the
// switch's.
std::uint32_t take(const Graph& graph, const RoutingPolicy& policy, Branch branch) {
  if (branch.ports.size() == 1) return 0;
  branch.seed = hash_combine(branch.seed, graph.node_number(branch.at));
  return policy.choose(branch);
}

// Returns the intermediate of a flow that always makes a detour, chosen by its hash. kNoId means that it goes
// straight.
std::uint32_t intermediate(const Routes& routes, NodeId from, NodeId to, const RoutingPolicy& policy,
                           std::uint64_t flow) {
  const RoutingPlan plan = policy.compile();
  if (plan.detour != RoutingPlan::Detour::always || plan.per_packet()) return kNoId;
  if (routes.intermediates() == 0) return kNoId;
  const std::uint32_t via = choose_by_hash(flow, 0, routes.intermediates());
  return routes.passes(from, via) || routes.passes(to, via) ? kNoId : via;
}

// Returns the steps from the NIC's port `first` on, hop by hop, each in its virtual channel. `packet` has its
// destination, intermediate and choice. take_one(packet, hops) returns the index of a hop.
template <class Take>
std::vector<std::uint32_t> walk(const Graph& graph, const Routes& routes, PortId first, Waypoint packet,
                                Take take_one) {
  std::vector<std::uint32_t> path{first};
  packet.came = {first, 0};
  std::vector<Hop> hops;
  for (packet.at = graph.port(first).peer_node; packet.at != packet.destination;) {
    NETSIM_CHECK(path.size() <= graph.node_count(), "routes form a loop at " + graph.node(packet.at).name);
    packet.reached_intermediate = packet.via != kNoId && routes.passes(packet.at, packet.via);
    if (packet.reached_intermediate) packet.via = kNoId;
    hops.clear();
    routes.add_hops(packet, hops);
    if (hops.empty()) return {};
    packet.came = hops[take_one(packet, hops)];
    path.push_back(make_hop_step(packet.came));
    packet.at = graph.port(packet.came.port).peer_node;
  }
  return path;
}

std::vector<std::uint32_t> way_in_channels(const Graph& graph, const Routes& routes, NodeId from, NodeId to,
                                           const RoutingPolicy& policy, std::uint64_t flow,
                                           std::uint64_t seed) {
  const auto first = routes.next_hops(from, to);
  if (first.empty()) return {};
  Waypoint packet;
  packet.destination = to;
  packet.via = intermediate(routes, from, to, policy, flow);
  packet.choice = static_cast<std::uint32_t>(hash_combine(seed, flow) % routes.choices());
  std::vector<PortId> ports;
  return walk(graph, routes, first.front(), packet, [&](const Waypoint& at, const std::vector<Hop>& hops) {
    ports.clear();
    for (const Hop& hop : hops) ports.push_back(hop.port);
    return take(graph, policy, {at.at, to, flow, seed, ports});
  });
}

}  // namespace

std::vector<std::uint32_t> nic_path(const Graph& graph, const Routes& routes, const std::vector<bool>& down,
                                    NodeId from, NodeId to, const RoutingPolicy& policy,
                                    std::uint32_t channels, std::uint64_t flow, std::uint64_t seed) {
  if (const auto* fixed = policy.fixed_path(graph.node(from).name, graph.node(to).name); fixed != nullptr) {
    std::vector<PortId> path = prescribed_path(graph, from, to, *fixed);
    const bool whole = std::none_of(path.begin(), path.end(), [&](PortId port) { return down[port]; });
    if (whole || !policy.leaves_fixed_path()) return path;
  }
  if (channels > 1 || policy.compile().detour != RoutingPlan::Detour::never)
    return way_in_channels(graph, routes, from, to, policy, flow, seed);
  std::vector<PortId> path;
  const std::size_t limit = graph.node_count();
  for (NodeId at = from; at != to;) {
    const auto hops = routes.next_hops(at, to);
    if (hops.empty()) return {};
    NETSIM_CHECK(path.size() < limit, "routes form a loop at " + graph.node(at).name);
    const PortId port = hops[take(graph, policy, {at, to, flow, seed, hops})];
    path.push_back(port);
    at = graph.port(port).peer_node;
  }
  return path;
}

std::vector<PortId> nic_path_over(const Graph& graph, const Routes& routes, NodeId from, NodeId to,
                                  std::uint32_t via) {
  const auto first = routes.next_hops(from, to);
  if (first.empty()) return {};
  Waypoint packet;
  packet.destination = to;
  packet.via = via;
  const NodeId first_switch = graph.port(first.front()).peer_node;
  if (routes.passes(first_switch, via) || routes.passes(to, via)) packet.via = kNoId;
  return ports_of_steps(walk(graph, routes, first.front(), packet,
                             [](const Waypoint&, const std::vector<Hop>&) { return std::size_t{0}; }));
}

std::vector<std::vector<PortId>> prescribed_paths(const Graph& graph, const RoutingPolicy& policy) {
  std::vector<std::vector<PortId>> paths;
  std::map<std::string, NodeId> nodes;
  const auto ends = policy.fixed_ends();
  paths.reserve(ends.size());
  for (NodeId id = 0; !ends.empty() && id < graph.node_count(); ++id) nodes[graph.node(id).name] = id;
  for (const auto& [from, to] : ends)
    paths.push_back(prescribed_path(graph, nodes.at(from), nodes.at(to), *policy.fixed_path(from, to)));
  return paths;
}

std::vector<PortId> ports_of_steps(std::vector<std::uint32_t> steps) {
  for (std::uint32_t& step : steps) step = port_of_step(step);
  return steps;
}

// Each pair of GPUs keeps to one of the equal ways over a fabric.
std::vector<PortId> scale_up_path(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
  if (cluster.way(from, to) != HostRouteKind::nvlink_fabric) return cluster.way_inside(from, to);
  std::vector<PortId> path;
  const NodeId end = cluster.gpus[to].node;
  for (NodeId at = cluster.gpus[from].node; at != end; at = cluster.graph.port(path.back()).peer_node) {
    const auto hops = cluster.routes->next_hops(at, end);
    NETSIM_CHECK(!hops.empty() && path.size() < cluster.graph.node_count(),
                 "no path over the scale-up fabric");
    path.push_back(hops[(cluster.gpu_number(from) + cluster.gpu_number(to)) % hops.size()]);
  }
  return path;
}

}  // namespace netsim
