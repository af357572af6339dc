#include "sim/network/packet_forwarding.h"

#include "sim/core/errors.h"
#include "sim/network/port_arbiter.h"

namespace netsim {
namespace {

// Returns the hop with the least load. Among equal hops it takes the first, counted from `first`.
template <class T, class Load>
T least_loaded(std::span<const T> hops, std::uint32_t first, Load load) {
  T best = hops[first];
  auto least = load(best);
  for (std::uint32_t i = 1; i < hops.size(); ++i) {
    const T hop = hops[(first + i) % hops.size()];
    const auto found = load(hop);
    if (found < least) {
      least = found;
      best = hop;
    }
  }
  return best;
}

}  // namespace

PortLoad NextHops::load(std::uint32_t hop) const {
  const auto [stopped, waiting, busy] =
      ports_.load(hops_[hop].port, state_.in_channel[hops_[hop].channel][priority_]);
  return {stopped, waiting, busy};
}

Hop PacketForwarding::choose(std::uint32_t routed, std::uint32_t index, PacketArena& packets,
                             const PortArbiter& ports) {
  const fabric::RoutedPath& route = state_.routed[routed];
  Packet& packet = packets[index];
  const NodeId node = state_.graph.port(packet.ingress).peer_node;
  if (state_.routing.choice == RoutingPlan::Choice::own) [[unlikely]] {
    chosen_for_ =
        view_of(packets, index, packet.priority < kDataPriority ? 0 : state_.class_of(packet.priority));
    chosen_for_destination_ = route.destination;
  }
  Hop hop;
  if (state_.channels == 1 && !state_.routing.detours()) {
    const std::span<const PortId> hops = state_.routes->next_hops(node, route.destination);
    if (hops.empty()) return {};
    hop.port = hops.size() == 1 ? hops[0] : choose_among(node, hops, packet.priority, ports, &route);
  } else {
    Waypoint at{.at = node,
                .came = {packet.ingress, state_.channel_of(packet.priority)},
                .destination = route.destination};
    std::uint32_t straight = kNoId;
    hop = choose_hop(at, state_.routing.detours() ? packets.via(index) : straight, packet.priority, ports,
                     route);
    if (hop.port == kNoId) return hop;
    // An earlier hop may have used routes with more channels.
    hop.channel = std::min(hop.channel, state_.channels - 1);
  }
  packet.path = route.step + (state_.graph.port(hop.port).peer_node == route.destination ? 1 : 0);
  return hop;
}

Hop PacketForwarding::choose_hop(Waypoint& packet, std::uint32_t& via, std::uint8_t priority,
                                 const PortArbiter& ports, const fabric::RoutedPath& route) {
  if (state_.adaptive_channel != kNoId) {
    const Hop hop = choose_adaptive(packet, priority, ports);
    if (hop.port != kNoId) return hop;
  }
  // Packets that may escape are routed the same wherever they come from.
  if (state_.adaptive_channel != kNoId && state_.routes->adaptive_channel() != kNoId) packet.came = {};
  const bool first = packet.came.port != kNoId && !state_.at_switch(packet.came.port);
  if (state_.routing.detours()) {
    if (first) {
      take_via(packet, priority, ports);
    } else {
      packet.via = via;
    }
    if (packet.via != kNoId && state_.routes->passes(packet.at, packet.via)) {
      packet.via = kNoId;
      packet.reached_intermediate = true;
    }
    via = packet.via;
  }
  hops_.clear();
  state_.routes->add_hops(packet, hops_);
  return hops_.empty() ? Hop{}
                       : choose_among(packet.at, std::span<const Hop>(hops_), priority, ports, &route);
}

// Returns one of the shortest hops that are not held back. If all are, it returns the escape hop if that
// queue is empty. Otherwise the packet waits in an adaptive channel, from which let_escape() moves it;
// without such hops here the port is kNoId.
//
// A packet that came by an escape channel keeps its space in that channel's buffer while it waits here. It
// must not wait behind packets that escape by other ports. Their escape channels may themselves wait for its
// space.
//
// So it takes an adaptive channel only if no packet waits in it. Otherwise it takes its own escape channel,
// behind the packets there.
Hop PacketForwarding::choose_adaptive(const Waypoint& packet, std::uint8_t priority,
                                      const PortArbiter& ports) {
  hops_.clear();
  state_.routes->add_adaptive_hops(packet, hops_);
  if (hops_.empty()) return {};
  const std::uint32_t queue = state_.in_channel[state_.adaptive_channel][priority];
  const bool escaped = packet.came.channel != state_.adaptive_channel && state_.at_switch(packet.came.port);
  const auto barred = [&](const Hop& hop) {
    return ports.is_stopped(hop.port, queue) || (escaped && state_.queue(hop.port, queue).head != kNoIndex);
  };
  if (std::all_of(hops_.begin(), hops_.end(), barred)) {
    other_hops_.clear();
    Waypoint anew = packet;
    anew.came = {};
    state_.routes->add_hops(anew, other_hops_);
    if (other_hops_.empty()) return {};
    const Hop escape = other_hops_.front();
    if (escaped || state_.queue(escape.port, state_.in_channel[escape.channel][priority]).head == kNoIndex)
      return escape;
  } else {
    std::erase_if(hops_, barred);
  }
  return choose_among(packet.at, std::span<const Hop>(hops_), priority, ports);
}

Hop PacketForwarding::escape_hop(const Packet& packet) {
  Waypoint at;
  at.at = state_.graph.port(packet.ingress).peer_node;
  at.destination = state_.routed[packet.step & (kGivenHop - 1)].destination;
  other_hops_.clear();
  state_.routes->add_hops(at, other_hops_);
  return other_hops_.empty() ? Hop{} : other_hops_.front();
}

// ---- Detours: a random intermediate out of all. The packet goes straight if one of its ends passes it.

void PacketForwarding::take_via(Waypoint& packet, std::uint8_t priority, const PortArbiter& ports) {
  const std::uint32_t count = state_.routes->intermediates();
  if (count == 0) return;
  Waypoint detour = packet;
  detour.via = static_cast<std::uint32_t>(state_.choices[packet.at].below(count));
  if (state_.routes->passes(packet.at, detour.via) || state_.routes->passes(packet.destination, detour.via))
    return;
  if (state_.routing.detour == RoutingPlan::Detour::always ||
      detour_is_shorter(packet, detour, priority, ports))
    packet.via = detour.via;
}

bool PacketForwarding::detour_is_shorter(const Waypoint& straight, const Waypoint& detour,
                                         std::uint8_t priority, const PortArbiter& ports) {
  const auto cost = [&](const Waypoint& way, Bytes bias) {
    hops_.clear();
    state_.routes->add_hops(way, hops_);
    if (hops_.empty()) return Int128{INT64_MAX};
    const PortId port = choose_among(way.at, std::span<const Hop>(hops_), priority, ports).port;
    return static_cast<Int128>(state_.queued(port) + bias) * hops_left(way);
  };
  return cost(detour, state_.routing.bias) < cost(straight, 0);
}

// Returns the number of hops to the destination, by way of the intermediate if there is one.
std::uint32_t PacketForwarding::hops_left(Waypoint packet) {
  std::uint32_t hops = 0;
  while (packet.at != packet.destination && hops < 64) {
    packet.reached_intermediate = packet.via != kNoId && state_.routes->passes(packet.at, packet.via);
    if (packet.reached_intermediate) packet.via = kNoId;
    other_hops_.clear();
    state_.routes->add_hops(packet, other_hops_);
    if (other_hops_.empty()) break;
    packet.came = other_hops_.front();
    packet.at = state_.graph.port(packet.came.port).peer_node;
    ++hops;
  }
  return hops;
}

// ---- The choice

std::uint32_t PacketForwarding::choose_kept(NodeId node, std::span<const PortId> ports,
                                            const fabric::RoutedPath& route) {
  return state_.policy->choose({node, route.destination, route.flow,
                                hash_combine(state_.routing_seed, state_.graph.node_number(node)), ports});
}

std::uint32_t PacketForwarding::choose_kept(NodeId node, std::span<const Hop> hops,
                                            const fabric::RoutedPath& route) {
  ports_.clear();
  for (const Hop& hop : hops) ports_.push_back(hop.port);
  return choose_kept(node, ports_, route);
}

template <class T, class Load>
T PacketForwarding::choose_by(NodeId node, std::span<const T> hops, const fabric::RoutedPath* route,
                              Load load) {
  const auto count = static_cast<std::uint32_t>(hops.size());
  switch (state_.routing.choice) {
    case RoutingPlan::Choice::per_flow:
      return hops[choose_kept(node, hops, *route)];
    case RoutingPlan::Choice::random:
      return hops[state_.choices[node].below(count)];
    case RoutingPlan::Choice::least_loaded:
      return least_loaded(hops, state_.turns[node]++ % count, load);
    default:
      return hops[state_.turns[node]++ % count];
  }
}

std::uint32_t PacketForwarding::choose_own(NodeId node, std::span<const Hop> hops, std::uint8_t priority,
                                           const PortArbiter& ports) {
  const std::uint32_t hop = state_.routers[node]->choose(
      chosen_for_, chosen_for_destination_, NextHops(state_, ports, hops, priority), ports.now());
  NETSIM_CHECK(hop < hops.size(), "a routing policy chose a hop that there is not");
  return hop;
}

PortId PacketForwarding::choose_among(NodeId node, std::span<const PortId> hops, std::uint8_t priority,
                                      const PortArbiter& ports, const fabric::RoutedPath* route) {
  if (state_.routing.choice == RoutingPlan::Choice::own) [[unlikely]] {
    hops_.clear();
    for (const PortId port : hops) hops_.push_back({port, 0});
    return hops[choose_own(node, hops_, priority, ports)];
  }
  return choose_by(node, hops, route, [&](PortId port) { return ports.load(port, priority); });
}

Hop PacketForwarding::choose_among(NodeId node, std::span<const Hop> hops, std::uint8_t priority,
                                   const PortArbiter& ports, const fabric::RoutedPath* route) {
  if (hops.size() == 1) return hops[0];
  if (state_.routing.choice == RoutingPlan::Choice::own) [[unlikely]]
    return hops[choose_own(node, hops, priority, ports)];
  return choose_by(node, hops, route, [&](const Hop& hop) {
    return ports.load(hop.port, state_.in_channel[hop.channel][priority]);
  });
}

}  // namespace netsim
