#include "sim/network/packet_forwarding.h"

#include "sim/network/port_arbiter.h"

namespace netsim {
namespace {

// The least load; among equals the first from `first` on.
PortId least_loaded(std::span<const PortId> hops, std::uint32_t first, std::uint8_t priority,
                    const PortArbiter& ports) {
  PortId best = hops[first];
  auto least = ports.load(best, priority);
  for (std::uint32_t i = 1; i < hops.size(); ++i) {
    const PortId port = hops[(first + i) % hops.size()];
    const auto found = ports.load(port, priority);
    if (found < least) {
      least = found;
      best = port;
    }
  }
  return best;
}

}  // namespace

PortId PacketForwarding::choose(std::uint32_t routed, Packet& packet, const PortArbiter& ports) {
  const fabric::RoutedPath& route = state_.routed[routed];
  const NodeId node = state_.graph.port(packet.ingress).peer_node;
  const std::span<const PortId> hops = state_.routes->next_hops(node, route.destination);
  if (hops.empty()) return kNoId;
  const PortId port = hops.size() == 1 ? hops[0] : choose_among(node, hops, packet.priority, ports);
  packet.path = route.step + (state_.graph.port(port).peer_node == route.destination ? 1 : 0);
  return port;
}

PortId PacketForwarding::choose_among(NodeId node, std::span<const PortId> hops, std::uint8_t priority,
                                      const PortArbiter& ports) {
  const auto count = static_cast<std::uint32_t>(hops.size());
  switch (state_.packet_routing) {
    case PacketRouting::random:
      return hops[state_.choices[node].below(count)];
    case PacketRouting::adaptive:
      return least_loaded(hops, state_.turns[node]++ % count, priority, ports);
    default:
      return hops[state_.turns[node]++ % count];
  }
}

}  // namespace netsim
