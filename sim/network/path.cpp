#include "sim/network/path.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

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

// PathHint: takes the digits of a path hint, the lowest first.
class PathHint {
 public:
  explicit PathHint(std::uint32_t hint) : given_(hint != kNoPathHint), rest_(hint) {}
  bool given() const { return given_; }
  // Returns the next digit, whose base is `base`.
  std::uint32_t digit(std::uint32_t base) {
    const std::uint32_t taken = rest_ % base;
    rest_ /= base;
    return taken;
  }

 private:
  bool given_;
  std::uint32_t rest_;
};

// Returns the hint that applies to the flow: none if the policy takes no hints.
PathHint hint_of(const PathFlow& flow, const RoutingPolicy& policy) {
  return PathHint(policy.takes_path_hints() ? flow.hint : kNoPathHint);
}

// Returns the index of the branch's port that the flow takes. The branch's seed is the fabric's, not yet the
// switch's. The NIC itself chooses by the policy, because its port belongs to the queue pair.
std::uint32_t take(const Graph& graph, const RoutingPolicy& policy, Branch branch, PathHint& hint) {
  if (branch.ports.size() == 1) return 0;
  if (hint.given() && graph.node(branch.at).kind != NodeKind::nic)
    return hint.digit(static_cast<std::uint32_t>(branch.ports.size()));
  branch.seed = hash_combine(branch.seed, graph.node_number(branch.at));
  return policy.choose(branch);
}

// Returns whether flows choose an intermediate, as one that is constant along the path.
bool has_intermediate(const Routes& routes, const RoutingPolicy& policy) {
  const RoutingPlan plan = policy.compile();
  return plan.detour == RoutingPlan::Detour::always && !plan.per_packet() && routes.intermediates() != 0;
}

// Returns the intermediate of a flow that always makes a detour, chosen by its hint or else its hash. kNoId
// means that it goes straight.
std::uint32_t intermediate(const Routes& routes, const PathFlow& flow, const RoutingPolicy& policy,
                           PathHint& hint) {
  if (!has_intermediate(routes, policy)) return kNoId;
  const std::uint32_t via =
      hint.given() ? hint.digit(routes.intermediates()) : choose_by_hash(flow.id, 0, routes.intermediates());
  return routes.passes(flow.from, via) || routes.passes(flow.to, via) ? kNoId : via;
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

std::vector<std::uint32_t> way_in_channels(const Graph& graph, const Routes& routes, const PathFlow& flow,
                                           const RoutingPolicy& policy, std::uint64_t seed) {
  const auto first = routes.next_hops(flow.from, flow.to);
  if (first.empty()) return {};
  PathHint hint = hint_of(flow, policy);
  Waypoint packet;
  packet.destination = flow.to;
  packet.via = intermediate(routes, flow, policy, hint);
  packet.choice = hint.given() ? hint.digit(routes.choices())
                               : static_cast<std::uint32_t>(hash_combine(seed, flow.id) % routes.choices());
  std::vector<PortId> ports;
  return walk(graph, routes, first.front(), packet, [&](const Waypoint& at, const std::vector<Hop>& hops) {
    ports.clear();
    for (const Hop& hop : hops) ports.push_back(hop.port);
    return take(graph, policy, {at.at, flow.to, flow.id, seed, ports}, hint);
  });
}

bool in_channels(const RoutingPolicy& policy, std::uint32_t channels) {
  return channels > 1 || policy.compile().detour != RoutingPlan::Detour::never;
}

// Returns the way that the policy prescribes for the flow; empty if it prescribes none, or the flow leaves it
// because of a link that is down.
std::vector<PortId> fixed_way(const Graph& graph, const std::vector<bool>& down, const PathFlow& flow,
                              const RoutingPolicy& policy) {
  const auto* fixed = policy.fixed_path(graph.node(flow.from).name, graph.node(flow.to).name);
  if (fixed == nullptr) return {};
  std::vector<PortId> path = prescribed_path(graph, flow.from, flow.to, *fixed);
  const bool whole = std::none_of(path.begin(), path.end(), [&](PortId port) { return down[port]; });
  if (!whole && policy.leaves_fixed_path()) path.clear();
  return path;
}

// HintCounter: the largest product of the numbers of hops at the switches of any path to a destination.
class HintCounter {
 public:
  HintCounter(const Graph& graph, const Routes& routes, bool channels)
      : graph_(graph), routes_(routes), channels_(channels) {}

  // Returns the product from the switch on that `packet` has come to.
  std::uint64_t from(Waypoint packet) {
    if (packet.at == packet.destination) return 1;
    const auto key = std::tuple(packet.came.port, packet.came.channel, packet.via, packet.choice);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    packet.reached_intermediate = packet.via != kNoId && routes_.passes(packet.at, packet.via);
    if (packet.reached_intermediate) packet.via = kNoId;
    std::uint64_t most = 0;
    const std::vector<Hop> hops = hops_of(packet);
    for (const Hop& hop : hops) {
      packet.came = hop;
      packet.at = graph_.port(hop.port).peer_node;
      most = std::max(most, from(packet));
    }
    return known_[key] = std::min<std::uint64_t>(most * hops.size(), kNoPathHint - 1);
  }

 private:
  std::vector<Hop> hops_of(const Waypoint& packet) const {
    std::vector<Hop> hops;
    if (channels_) {
      routes_.add_hops(packet, hops);
      return hops;
    }
    for (const PortId port : routes_.next_hops(packet.at, packet.destination)) hops.push_back({port, 0});
    return hops;
  }

  const Graph& graph_;
  const Routes& routes_;
  bool channels_;
  std::map<std::tuple<PortId, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint64_t> known_;
};

}  // namespace

std::vector<std::uint32_t> nic_path(const Graph& graph, const Routes& routes, const std::vector<bool>& down,
                                    const PathFlow& flow, const RoutingPolicy& policy, std::uint32_t channels,
                                    std::uint64_t seed) {
  if (std::vector<PortId> fixed = fixed_way(graph, down, flow, policy); !fixed.empty()) return fixed;
  if (in_channels(policy, channels)) return way_in_channels(graph, routes, flow, policy, seed);
  PathHint hint = hint_of(flow, policy);
  std::vector<PortId> path;
  const std::size_t limit = graph.node_count();
  for (NodeId at = flow.from; at != flow.to;) {
    const auto hops = routes.next_hops(at, flow.to);
    if (hops.empty()) return {};
    NETSIM_CHECK(path.size() < limit, "routes form a loop at " + graph.node(at).name);
    const PortId port = hops[take(graph, policy, {at, flow.to, flow.id, seed, hops}, hint)];
    path.push_back(port);
    at = graph.port(port).peer_node;
  }
  return path;
}

std::uint32_t count_path_hints(const Graph& graph, const Routes& routes, const std::vector<bool>& down,
                               const PathFlow& flow, const RoutingPolicy& policy, std::uint32_t channels,
                               std::uint64_t seed) {
  if (!policy.takes_path_hints() || policy.compile().per_packet()) return 1;
  if (!fixed_way(graph, down, flow, policy).empty()) return 1;
  const std::vector<std::uint32_t> path = nic_path(graph, routes, down, flow, policy, channels, seed);
  if (path.empty()) return 1;
  const bool in_channels = netsim::in_channels(policy, channels);
  const bool detours = has_intermediate(routes, policy);
  const std::uint32_t vias = detours ? routes.intermediates() : 1;
  const std::uint32_t choices = in_channels ? routes.choices() : 1;
  HintCounter counter(graph, routes, in_channels);
  std::uint64_t most = 1;
  for (std::uint32_t via = 0; via < vias; ++via) {
    const bool straight = !detours || routes.passes(flow.from, via) || routes.passes(flow.to, via);
    for (std::uint32_t choice = 0; choice < choices; ++choice) {
      Waypoint packet;
      packet.came = {path.front(), 0};
      packet.at = graph.port(path.front()).peer_node;
      packet.destination = flow.to;
      packet.via = straight ? kNoId : via;
      packet.choice = choice;
      most = std::max(most, counter.from(packet));
    }
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(most * vias * choices, kNoPathHint - 1));
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
