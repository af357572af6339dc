// PacketForwarding: chooses where packets go next. A packet follows its path, an array of steps made once for
// all packets of a flow. Where the routing policy decides packet by packet, each switch chooses the next hop.
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

  // Returns the step after the packet's present port. Link control has no path and gets 0. The packet must
  // not have taken the last step of its path.
  std::uint32_t next_step(const Packet& packet) const {
    return packet.kind == PacketKind::link_control ? 0 : paths_[packet.path];
  }
  // Handles EventKind::route with target `routed`. Returns the hop by which packet `index` leaves its switch,
  // and sets the packet's path to the step after that hop. The port is kNoId if no way is left because links
  // are down.
  //
  // `ports` are the switch's ports.
  Hop choose(std::uint32_t routed, std::uint32_t index, PacketArena& packets, const PortArbiter& ports);
  // Returns the hop that a packet in an adaptive channel at a switch may escape by. The port is kNoId if
  // links that are down leave none.
  Hop escape_hop(const Packet& packet);

  // Returns the address of the array's pointer, for EventLoop::prefetch_behind.
  const void* const* base() const { return &base_; }

 private:
  Hop choose_hop(Waypoint& packet, std::uint32_t& via, std::uint8_t priority, const PortArbiter& ports,
                 const fabric::RoutedPath& route);
  Hop choose_adaptive(const Waypoint& packet, std::uint8_t priority, const PortArbiter& ports);
  void take_via(Waypoint& packet, std::uint8_t priority, const PortArbiter& ports);
  bool detour_is_shorter(const Waypoint& straight, const Waypoint& detour, std::uint8_t priority,
                         const PortArbiter& ports);
  std::uint32_t hops_left(Waypoint packet);
  // Chooses one of the hops. `route` is needed only where the policy keeps a flow on one way.
  Hop choose_among(NodeId node, std::span<const Hop> hops, std::uint8_t priority, const PortArbiter& ports,
                   const fabric::RoutedPath* route = nullptr);
  PortId choose_among(NodeId node, std::span<const PortId> hops, std::uint8_t priority,
                      const PortArbiter& ports, const fabric::RoutedPath* route);
  std::uint32_t choose_own(NodeId node, std::span<const Hop> hops, std::uint8_t priority,
                           const PortArbiter& ports);
  template <class T, class Load>
  T choose_by(NodeId node, std::span<const T> hops, const fabric::RoutedPath* route, Load load);
  // Returns the index of the port or hop that all packets of a flow take.
  std::uint32_t choose_kept(NodeId node, std::span<const PortId> ports, const fabric::RoutedPath& route);
  std::uint32_t choose_kept(NodeId node, std::span<const Hop> hops, const fabric::RoutedPath& route);

  FabricState& state_;
  const std::uint32_t* paths_;
  const void* base_;
  // Buffers, kept to avoid allocation.
  std::vector<Hop> hops_, other_hops_;
  std::vector<PortId> ports_;
  // With RoutingPlan::Choice::own: the packet that choose() is choosing for, and its destination.
  PacketView chosen_for_;
  NodeId chosen_for_destination_ = kNoId;
};

}  // namespace netsim
