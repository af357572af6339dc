// Packets that find their way switch by switch: spraying and adaptive routing.
#include <algorithm>
#include <tuple>

#include "sim/core/errors.h"
#include "sim/network/fabric_part.h"

namespace netsim {

void FabricPart::on_route(const Event& event) {
  const fabric::RoutedPath& route = state_.routed[event.target];
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Packet& k = packets_[packet];
  const NodeId node = state_.graph.port(k.ingress).peer_node;
  const std::span<const PortId> hops = state_.routes->next_hops(node, route.destination);
  if (hops.empty()) {  // links are down and no way is left
    ++rare_[k.ingress ^ 1U].no_route;
    discard(packet);
    return;
  }
  const PortId port = hops.size() == 1 ? hops[0] : choose_port(node, hops, k.priority);
  ports_[port].digest = digest(ports_[port].digest, event);
  k.path = route.step + (state_.graph.port(port).peer_node == route.destination ? 1 : 0);
  enqueue(port, packet);
}

PortId FabricPart::choose_port(NodeId node, std::span<const PortId> hops, std::uint8_t priority) {
  const auto count = static_cast<std::uint32_t>(hops.size());
  switch (state_.packet_routing) {
    case PacketRouting::random:
      return hops[state_.choices[node].below(count)];
    case PacketRouting::adaptive:
      return least_loaded(hops, state_.turns[node]++ % count, priority);
    default:
      return hops[state_.turns[node]++ % count];
  }
}

// The fewest bytes waiting, then the soonest free; among equals the first from `first` on.
PortId FabricPart::least_loaded(std::span<const PortId> hops, std::uint32_t first,
                                std::uint8_t priority) const {
  const auto load = [&](PortId port) {
    const bool held = (ports_[port].paused >> priority & 1) != 0;
    return std::tuple(held, state_.queued(port), std::max<Time>(ports_[port].busy_until - loop_.now(), 0));
  };
  PortId best = hops[first];
  auto least = load(best);
  for (std::uint32_t i = 1; i < hops.size(); ++i) {
    const PortId port = hops[(first + i) % hops.size()];
    const auto found = load(port);
    if (found < least) {
      least = found;
      best = port;
    }
  }
  return best;
}

}  // namespace netsim
