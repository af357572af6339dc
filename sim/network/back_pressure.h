// BackPressure: flow control between the two ends of a link, by PFC pause and resume frames or by credits.
// Sends these frames, obeys those that arrive, and makes both ends agree again after an outage. SwitchBuffers
// keeps the account of buffer space behind it.
#pragma once

#include <cstdint>

#include "sim/core/event_loop.h"
#include "sim/network/fabric_state.h"
#include "sim/network/packet.h"
#include "sim/network/remote_packet_events.h"
#include "sim/network/switch_buffers.h"

namespace netsim {

class PortArbiter;

class BackPressure {
 public:
  BackPressure(EventLoop& loop, FabricState& state, SwitchBuffers& buffers, PortArbiter& ports,
               RemotePacketEvents& remote_event)
      : loop_(loop), state_(state), buffers_(buffers), ports_(ports), remote_event_(remote_event) {}

  // Sends a PFC pause for `priority` to the sender whose port is `port`, over the other direction of that
  // link.
  void pause_sender(PortId port, std::uint32_t priority);
  void resume_sender(PortId port, std::uint32_t priority);
  // Called when `bytes` that arrived over `port`'s link have left the buffer at its far end or never entered
  // it. Sends credits back when enough are due.
  void return_credit(PortId port, std::uint32_t priority, Bytes bytes);
  // Called when `port` begins to send a packet over a link with credits.
  void use_credit(PortId port, std::uint32_t priority, Bytes bytes);
  // Called when a link control frame that `port` sends is lost on the link.
  void frame_lost(PortId port, const Packet& frame);
  void on_link_control(const Event& event);

  // Called between events when the link is known to be down. No resume or credit can arrive, so the port
  // sends the waiting packets and they are lost.
  void abandon(PortId port);
  // Called between events when both directions of the link are up again. This end repeats its pause state and
  // credits for the far end's packets. Lossless classes wait until the far end has done the same.
  void come_up(PortId port);

 private:
  void receive_pause(PortId port, std::uint32_t priority);
  void release(PortId port, std::uint32_t priority);
  void send_frame(PortId to, std::uint32_t message, std::uint32_t credit, Bytes frame_bytes);

  EventLoop& loop_;
  FabricState& state_;
  SwitchBuffers& buffers_;
  PortArbiter& ports_;
  RemotePacketEvents& remote_event_;
};

}  // namespace netsim
