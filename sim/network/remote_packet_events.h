// RemotePacketEvents: packets and link control between the sets of atoms. What crosses to another set is
// remote events by value; the sender's packet is free then.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/core/logical_process.h"
#include "sim/network/fabric_state.h"
#include "sim/network/packet.h"

namespace netsim {

class RemotePacketEvents {
 public:
  // Takes the remote events of all events that packets cause.
  RemotePacketEvents(LogicalProcess& set, FabricState& state, PacketArena& packets);
  RemotePacketEvents(const RemotePacketEvents&) = delete;
  RemotePacketEvents& operator=(const RemotePacketEvents&) = delete;

  // The packet goes to the far end of `port`, in another set; `step` is what happens there at `arrival`.
  // Releases it here.
  void post(PortId port, std::uint32_t packet, Time arrival, std::uint32_t step);
  // An event at the far end of `port`, in this set or another, which carries nothing else.
  void send_event(PortId port, const Event& event);

 private:
  void take(const RemoteEvent& remote_event, const std::byte* attached);

  LogicalProcess& set_;
  FabricState& state_;
  PacketArena& packets_;
};

}  // namespace netsim
