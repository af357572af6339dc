// Packets that find their way switch by switch: spraying and adaptive routing.
#include <algorithm>
#include <tuple>

#include "sim/core/errors.h"
#include "sim/network/fabric.h"

namespace netsim {

std::uint32_t Fabric::route_step(NodeId destination) {
  routed_.push_back({destination, kNone});
  return make_step(StepKind::route, static_cast<std::uint32_t>(routed_.size() - 1));
}

// The step is read again at every hop.
void Fabric::set_route_step(std::uint32_t step, std::uint32_t index) {
  routed_[step & ((1U << kStepShift) - 1)].step = index;
}

void Fabric::on_route(const Event& event) {
  const RoutedPath& route = routed_[event.target];
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Packet& k = packets_[packet];
  const NodeId node = graph_.port(k.ingress).peer_node;
  const std::span<const PortId> hops = routes_->next_hops(node, route.destination);
  if (hops.empty()) {  // links are down and no way is left
    drop(k.ingress, packet);
    return;
  }
  const PortId port = hops.size() == 1 ? hops[0] : choose_port(node, hops, k.priority);
  ports_[port].digest = digest(ports_[port].digest, event);
  k.path = route.step + (graph_.port(port).peer_node == route.destination ? 1 : 0);
  enqueue(port, packet);
}

PortId Fabric::choose_port(NodeId node, std::span<const PortId> hops, std::uint8_t priority) {
  const auto count = static_cast<std::uint32_t>(hops.size());
  switch (packet_routing_) {
    case PacketRouting::random:
      return hops[choices_[node].below(count)];
    case PacketRouting::adaptive:
      return least_loaded(hops, turns_[node]++ % count, priority);
    default:
      return hops[turns_[node]++ % count];
  }
}

// The fewest bytes waiting, then the soonest free; among equals the first from `first` on.
PortId Fabric::least_loaded(std::span<const PortId> hops, std::uint32_t first, std::uint8_t priority) const {
  const auto load = [&](PortId port) {
    const bool held = (ports_[port].paused >> priority & 1) != 0;
    return std::tuple(held, queued(port), std::max<Time>(ports_[port].busy_until - loop_.now(), 0));
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
