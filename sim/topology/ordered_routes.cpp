#include "sim/topology/ordered_routes.h"

#include <algorithm>
#include <set>
#include <string>

#include "sim/core/config_entries.h"
#include "sim/topology/channel_dependencies.h"
#include "sim/topology/hop_ordered_routes.h"
#include "sim/topology/layered_routes.h"

namespace netsim {
namespace {

constexpr std::uint64_t kEffort = 4'000'000;  // limit of the hops that the search for cycles examines

// Returns the number of links between the two switches with NICs that are farthest apart.
std::uint32_t longest_way(const Graph& graph, std::span<const HostPort> nics) {
  std::set<NodeId> access;
  for (const HostPort& nic : nics) {
    for (const PortId port : graph.ports_of(nic.nic)) {
      if (is_switch(graph, graph.port(port).peer_node)) access.insert(graph.port(port).peer_node);
    }
  }
  std::uint32_t longest = 0;
  for (const NodeId from : access) {
    const std::vector<std::uint32_t> distance = graph.fabric_distances(from);
    for (const NodeId to : access) {
      if (distance[to] != kNoId) longest = std::max(longest, distance[to]);
    }
  }
  return longest;
}

bool too_large(const Graph& graph) {
  std::uint32_t switches = 0;
  for (NodeId node = 0; node < graph.node_count(); ++node) switches += is_switch(graph, node) ? 1 : 0;
  return switches > kMostLayeredSwitches;
}

}  // namespace

void check_channels(const ChannelParameters& parameters, std::size_t switches, const ConfigNode& where) {
  if (parameters.channel_order != ChannelOrder::layers || switches <= kMostLayeredSwitches) return;
  entry_or_self(where, "channel_order")
      .fail("layers are found for at most " + std::to_string(kMostLayeredSwitches) + " switches, here are " +
            std::to_string(switches) + "; allowed: hops");
}

std::unique_ptr<Routes> ordered_routes(const Graph& graph, std::span<const HostPort> nics,
                                       const ChannelParameters& parameters, std::uint32_t longest) {
  const auto given = static_cast<std::uint32_t>(parameters.channels);
  const auto layers = [&] { return layered_routes(graph, nics, given, kMostOrderedChannels); };
  if (parameters.channel_order == ChannelOrder::layers) return layers();
  std::unique_ptr<Routes> shortest = shortest_path_routes(graph, nics);
  if (given == 1) return shortest;
  if (longest == 0) {
    if (given == 0 && find_cycle(graph, *shortest, RoutingFreedom::none, {}, kEffort).hops.empty())
      return shortest;
    longest = longest_way(graph, nics);
  }
  const std::uint32_t most = given == 0 ? static_cast<std::uint32_t>(kMostOrderedChannels) : given;
  if (longest > most && parameters.channel_order == ChannelOrder::automatic && !too_large(graph))
    return layers();
  return hop_ordered_routes(graph, std::move(shortest), given != 0 ? given : std::clamp(longest, 1U, most));
}

}  // namespace netsim
