// RemotePacketEvents: sends packets and link control to other logical processes and receives them. A packet
// travels by value in a remote event; its slot at the sender becomes free.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/core/logical_process.h"
#include "sim/network/fabric_state.h"
#include "sim/network/packet.h"

namespace netsim {

class RemotePacketEvents {
 public:
  // Registers handlers for the remote events of all event kinds that packets cause.
  RemotePacketEvents(LogicalProcess& set, FabricState& state, PacketArena& packets);
  RemotePacketEvents(const RemotePacketEvents&) = delete;
  RemotePacketEvents& operator=(const RemotePacketEvents&) = delete;

  // Sends the packet to the far end of `port`, in another logical process, and releases it here. `step` is
  // executed there at `arrival`.
  void post(PortId port, std::uint32_t packet, Time arrival, std::uint32_t step);
  // Sends an event without a packet to the far end of `port`, in this logical process or another.
  void send_event(PortId port, const Event& event);

 private:
  void take(const RemoteEvent& remote_event, const std::byte* attached);

  LogicalProcess& set_;
  FabricState& state_;
  PacketArena& packets_;
};

}  // namespace netsim
