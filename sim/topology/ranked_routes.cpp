#include "sim/topology/ranked_routes.h"

#include <algorithm>
#include <utility>

namespace netsim {

RankedRoutes::RankedRoutes(const Graph& graph, NodeId first_switch, std::span<const HostPort> nics,
                           std::vector<std::uint8_t> ranks, std::uint32_t given_channels)
    : first_switch_(first_switch),
      first_port_(static_cast<PortId>(graph.port_count() - ranks.size())),
      given_(given_channels),
      ranks_(std::move(ranks)),
      switch_of_(first_switch, kNoId),
      up_(first_switch, kNoId),
      down_(first_switch, kNoId) {
  for (const HostPort& host : nics) {
    for (const PortId port : graph.ports_of(host.nic)) {
      if (graph.port(port).peer_node < first_switch) continue;
      switch_of_[host.nic] = graph.port(port).peer_node - first_switch;
      up_[host.nic] = port;
      down_[host.nic] = port ^ 1U;
    }
  }
}

std::span<const PortId> RankedRoutes::next_hops(NodeId at, NodeId destination) const {
  if (at < first_switch_) return {&up_[at], 1};
  const std::uint32_t here = at - first_switch_, to = switch_of_[destination];
  if (here == to) return {&down_[destination], 1};
  return hops_to(here, to);
}

void RankedRoutes::add_hops(const Waypoint& packet, std::vector<Hop>& hops) const {
  const bool led = packet.via != kNoId;
  const std::span<const PortId> ports =
      led ? hops_to_via(packet.at - first_switch_, packet.via) : next_hops(packet.at, packet.destination);
  for (const PortId port : ports) hops.push_back({port, channel(packet.came, port)});
}

// Returns the channel of the hop to `next`. Links of hosts come before first_port_.
std::uint32_t RankedRoutes::channel(const Hop& came, PortId next) const {
  if (next < first_port_ || came.port == kNoId || came.port < first_port_) return 0;
  const std::uint32_t channel = came.channel + (rank(next) <= rank(came.port) ? 1 : 0);
  return given_ == 0 ? channel : std::min(channel, given_ - 1);
}

}  // namespace netsim
