// PacketForwarding: where packets go next. Either along their path, an array of steps that was made once for
// all packets of a flow, or, where the routing policy decides packet by packet, by the choice of each switch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/fabric_state.h"
#include "sim/network/packet.h"

namespace netsim {

class PortArbiter;

class PacketForwarding {
 public:
  explicit PacketForwarding(FabricState& state) : state_(state), paths_(state.paths.data()), base_(paths_) {}

  // What comes after the packet's present port. The path has no step after the last one: link control has no
  // path at all.
  std::uint32_t next_step(const Packet& packet) const {
    return packet.kind == PacketKind::link_control ? 0 : paths_[packet.path];
  }
  // EventKind::route at the target `routed`: the hop by which packet `index` leaves the switch that it is at,
  // its path set to the step after that; port kNoId where links are down and no way is left. `ports`: of the
  // switch.
  Hop choose(std::uint32_t routed, std::uint32_t index, PacketArena& packets, const PortArbiter& ports);
  // Of a packet that waits in an adaptive channel at a switch: the hop that it may wait for; port kNoId:
  // links that are down leave none.
  Hop escape_hop(const Packet& packet);

  // For EventLoop::prefetch_behind.
  const void* const* base() const { return &base_; }

 private:
  Hop choose_hop(Waypoint& packet, std::uint32_t& via, std::uint8_t priority, const PortArbiter& ports,
                 const fabric::RoutedPath& route);
  Hop choose_adaptive(const Waypoint& packet, std::uint8_t priority, const PortArbiter& ports);
  void take_via(Waypoint& packet, std::uint8_t priority, const PortArbiter& ports);
  bool detour_is_shorter(const Waypoint& straight, const Waypoint& detour, std::uint8_t priority,
                         const PortArbiter& ports);
  std::uint32_t hops_left(Waypoint packet);
  // `route`: only where the policy keeps flows together.
  Hop choose_among(NodeId node, std::span<const Hop> hops, std::uint8_t priority, const PortArbiter& ports,
                   const fabric::RoutedPath* route = nullptr);
  PortId choose_among(NodeId node, std::span<const PortId> hops, std::uint8_t priority,
                      const PortArbiter& ports, const fabric::RoutedPath* route);
  template <class T, class Load>
  T choose_by(NodeId node, std::span<const T> hops, const fabric::RoutedPath* route, Load load);
  // For all packets of a flow the same: a place among the ports.
  std::uint32_t choose_kept(NodeId node, std::span<const PortId> ports, const fabric::RoutedPath& route);
  std::uint32_t choose_kept(NodeId node, std::span<const Hop> hops, const fabric::RoutedPath& route);

  FabricState& state_;
  const std::uint32_t* paths_;
  const void* base_;
  std::vector<Hop> hops_, other_hops_;  // scratch
  std::vector<PortId> ports_;
};

}  // namespace netsim
