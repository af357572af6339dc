#include "sim/topology/structure.h"

#include <algorithm>
#include <bit>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <map>
#include <set>
#include <tuple>

namespace netsim {
namespace {

// Limit of the switches from which distances are measured; more are sampled.
constexpr std::size_t kMostSearches = 512;

// Returns the NIC's port into the fabric; kNoId: it has none.
PortId access_port(const Graph& graph, NodeId nic) {
  for (const PortId port : graph.ports_of(nic)) {
    if (is_switch(graph, graph.port(port).peer_node)) return port;
  }
  return kNoId;
}

// Returns the number of NICs at each switch.
std::map<NodeId, std::uint64_t> nics_by_switch(const Graph& graph, std::span<const HostPort> nics) {
  std::map<NodeId, std::uint64_t> count;
  for (const HostPort& port : nics) {
    const PortId access = access_port(graph, port.nic);
    if (access != kNoId) ++count[graph.port(access).peer_node];
  }
  return count;
}

// Reads a list by port that may be empty.
bool holds(const std::vector<bool>& ports, PortId port) { return !ports.empty() && ports[port]; }

// Computes the number of links from one switch to all others.
class Distances {
 public:
  explicit Distances(const Graph& graph)
      : graph_(graph), avoided_(graph.avoided()), distance_(graph.node_count()) {}
  const std::vector<std::uint32_t>& from(NodeId start) {
    std::fill(distance_.begin(), distance_.end(), kNoId);
    reached_.assign(1, start);
    distance_[start] = 0;
    for (std::size_t i = 0; i < reached_.size(); ++i) visit_neighbours(reached_[i]);
    return distance_;
  }

 private:
  void visit_neighbours(NodeId at) {
    for (const PortId port : graph_.ports_of(at)) {
      const NodeId next = graph_.port(port).peer_node;
      if (!is_switch(graph_, next) || distance_[next] != kNoId || holds(avoided_, port)) continue;
      distance_[next] = distance_[at] + 1;
      reached_.push_back(next);
    }
  }

  const Graph& graph_;
  std::vector<bool> avoided_;
  std::vector<std::uint32_t> distance_;
  std::vector<NodeId> reached_;
};

// Number of ordered pairs of NICs that a route joins, and the sum of the links of their routes.
struct DistancePairs {
  std::uint64_t count = 0, hops = 0;
};

// Adds the pairs of the NICs of one fabric. `nics` holds their number by switch.
void measure_distances(const Graph& graph, const std::map<NodeId, std::uint64_t>& nics, DistancePairs& pairs,
                       Structure& result) {
  Distances distances(graph);
  const std::size_t step = std::max<std::size_t>(1, (nics.size() + kMostSearches - 1) / kMostSearches);
  result.sampled = result.sampled || step > 1;
  std::size_t number = 0;
  for (const auto& [start, here] : nics) {
    if (number++ % step != 0) continue;
    const std::vector<std::uint32_t>& distance = distances.from(start);
    for (const auto& [end, there] : nics) {
      const std::uint64_t between = here * (start == end ? there - 1 : there);
      if (between == 0) continue;
      if (distance[end] == kNoId) {
        result.unreachable_pairs += between;
        continue;
      }
      result.diameter = std::max(result.diameter, distance[end] + 2);
      pairs.count += between;
      pairs.hops += between * (distance[end] + 2);
    }
  }
}

void count_tiers(const Graph& graph, Structure& result) {
  const std::vector<bool> down = graph.circuits_down();
  std::map<int, Structure::Tier> tiers;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (!is_switch(graph, id)) continue;
    Structure::Tier& tier = tiers[graph.node(id).tier];
    tier.tier = graph.node(id).tier;
    ++tier.switches;
    std::uint32_t ports = 0;
    for (const PortId port : graph.ports_of(id)) {
      if (holds(down, port)) continue;
      tier.radix = std::max(tier.radix, ++ports);
      const NodeId peer = graph.port(port).peer_node;
      const int there = is_switch(graph, peer) ? graph.node(peer).tier : -1;
      (there < tier.tier    ? tier.down
       : there == tier.tier ? tier.across
                            : tier.up) += graph.port(port).link.rate;
    }
  }
  for (const auto& [number, tier] : tiers) result.tiers.push_back(tier);
}

void count_links(const Graph& graph, Structure& result) {
  std::map<std::tuple<bool, BitRate, LinkKind>, std::uint64_t> count;
  const std::vector<bool> down = graph.circuits_down();
  for (PortId id = 0; id < graph.port_count(); id += 2) {
    if (holds(down, id)) continue;
    const PortSpec& port = graph.port(id);
    const bool in_host = graph.node(port.node).atom == graph.node(port.peer_node).atom;
    const BitRate rate = std::max(port.link.rate, graph.port(id ^ 1U).link.rate);
    ++count[{in_host, -rate, port.link.kind}];
    if (!in_host) ++result.cables;
  }
  for (const auto& [key, links] : count) {
    const auto& [in_host, rate, kind] = key;
    result.links.push_back({.kind = kind, .rate = -rate, .in_host = in_host, .count = links});
  }
}

void count_circuits(const Graph& graph, Structure& result) {
  std::set<PortId> possible;
  for (const OpticalSwitch& one : graph.optical_switches()) {
    ++result.optical_switches;
    result.configurations = std::max<std::uint64_t>(result.configurations, one.configurations.size());
    result.circuits += one.configurations.front().circuits.size();
    for (const auto& configuration : one.configurations)
      possible.insert(configuration.circuits.begin(), configuration.circuits.end());
  }
  result.possible_circuits = possible.size();
}

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<boost::edge_capacity_t, BitRate,
                    boost::property<boost::edge_residual_capacity_t, BitRate,
                                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

void add_capacity(FlowGraph& graph, std::size_t from, std::size_t to, BitRate rate) {
  const auto there = boost::add_edge(from, to, graph).first, back = boost::add_edge(to, from, graph).first;
  boost::put(boost::edge_capacity, graph, there, rate);
  boost::put(boost::edge_capacity, graph, back, 0);
  boost::put(boost::edge_reverse, graph, there, back);
  boost::put(boost::edge_reverse, graph, back, there);
}

// Returns the rates between neighbouring switches; parallel links count together.
std::map<std::pair<NodeId, NodeId>, BitRate> rates_between_switches(const Graph& graph,
                                                                    const std::vector<bool>& without) {
  std::map<std::pair<NodeId, NodeId>, BitRate> rates;
  const std::vector<bool> down = graph.circuits_down();
  for (PortId id = 0; id < graph.port_count(); ++id) {
    const PortSpec& port = graph.port(id);
    if (holds(down, id) || holds(without, id)) continue;
    if (is_switch(graph, port.node) && is_switch(graph, port.peer_node))
      rates[{port.node, port.peer_node}] += port.link.rate;
  }
  return rates;
}

bool has_unlike_directions(const Graph& graph) {
  for (PortId id = 0; id < graph.port_count(); id += 2) {
    if (graph.port(id).link.rate != graph.port(id + 1).link.rate) return true;
  }
  return false;
}

BitRate bisection_of(const Graph& graph, std::span<const HostPort> nics, const std::vector<bool>& without) {
  if (nics.size() < 2) return 0;
  std::vector<std::vector<bool>> halvings(1);
  for (std::size_t i = 0; i < nics.size(); ++i) halvings[0].push_back(i < nics.size() / 2);
  for (std::size_t bit = 1; bit < nics.size() && std::has_single_bit(nics.size()); bit *= 2) {
    halvings.emplace_back();
    for (std::size_t i = 0; i < nics.size(); ++i) halvings.back().push_back((i & bit) == 0);
  }
  if (has_unlike_directions(graph)) {
    for (std::size_t i = 0, count = halvings.size(); i < count; ++i) {
      halvings.push_back(halvings[i]);
      halvings.back().flip();
    }
  }
  BitRate least = INT64_MAX;
  for (const std::vector<bool>& side : halvings)
    least = std::min(least, cut_bandwidth(graph, nics, side, without));
  return least;
}

// Returns the sum over all packet fabrics, because nothing joins them.
BitRate find_bisection(const Cluster& cluster, const std::vector<bool>& without = {}) {
  BitRate sum = 0;
  for (const ClusterFabric& fabric : cluster.fabrics) {
    if (!fabric.scale_up) sum += bisection_of(cluster.graph, fabric.ports, without);
  }
  return sum;
}

}  // namespace

double Structure::Tier::oversubscription() const {
  return up == 0 ? 0 : static_cast<double>(down) / static_cast<double>(up);
}

BitRate cut_bandwidth(const Graph& graph, std::span<const HostPort> nics, const std::vector<bool>& side,
                      const std::vector<bool>& without) {
  const std::size_t source = graph.node_count(), sink = source + 1;
  FlowGraph flow(sink + 1);
  for (const auto& [ends, rate] : rates_between_switches(graph, without))
    add_capacity(flow, ends.first, ends.second, rate);
  std::map<NodeId, BitRate> from, to;
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const PortId access = access_port(graph, nics[i].nic);
    if (access == kNoId) continue;
    const PortId used = side[i] ? access : access ^ 1U;
    if (!holds(without, used))
      (side[i] ? from : to)[graph.port(access).peer_node] += graph.port(used).link.rate;
  }
  for (const auto& [at, rate] : from) add_capacity(flow, source, at, rate);
  for (const auto& [at, rate] : to) add_capacity(flow, at, sink, rate);
  return boost::push_relabel_max_flow(flow, source, sink);
}

Structure structure_of(const Cluster& cluster, const std::vector<bool>& failing) {
  const Graph& graph = cluster.graph;
  Structure result;
  result.hosts = cluster.host_count;
  result.gpus = cluster.gpus.size();
  result.nics = cluster.nics.size();
  count_tiers(graph, result);
  count_links(graph, result);
  count_circuits(graph, result);
  result.channels = cluster.routes->channels_in_words();
  DistancePairs pairs;
  for (const ClusterFabric& fabric : cluster.fabrics) {
    if (!fabric.scale_up) measure_distances(graph, nics_by_switch(graph, fabric.ports), pairs, result);
  }
  if (pairs.count > 0) result.mean_hops = static_cast<double>(pairs.hops) / static_cast<double>(pairs.count);
  result.bisection = find_bisection(cluster);
  for (const HostPort& port : cluster.nics) {
    const PortId access = access_port(graph, port.nic);
    if (access != kNoId) result.injection += graph.port(access).link.rate;
  }
  for (PortId id = 0; id < failing.size(); id += 2) result.failing_links += failing[id] || failing[id + 1];
  if (result.failing_links > 0) result.bisection_left = find_bisection(cluster, failing);
  return result;
}

}  // namespace netsim
