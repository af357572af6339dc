// PacketForwarding: where packets go next. Either along their path, an array of steps that was made once for
// all packets of a flow, or, where the routing policy decides packet by packet, by the choice of each switch.
#pragma once

#include <cstdint>
#include <span>

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
  // EventKind::route at the target `routed`: the port by which the packet leaves the switch that it is at,
  // its path set to the step after that; kNoId where links are down and no way is left. `ports`: of the
  // switch.
  PortId choose(std::uint32_t routed, Packet& packet, const PortArbiter& ports);

  // For EventLoop::prefetch_behind.
  const void* const* base() const { return &base_; }

 private:
  PortId choose_among(NodeId node, std::span<const PortId> hops, std::uint8_t priority,
                      const PortArbiter& ports);

  FabricState& state_;
  const std::uint32_t* paths_;
  const void* base_;
};

}  // namespace netsim
