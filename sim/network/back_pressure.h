// BackPressure: what the two ends of a link say to each other so that nothing is lost for want of room: PFC
// pauses and resumes, and credits. Sends the frames, obeys those that come, and brings both ends together
// again after an outage. The account behind it is SwitchBuffers'.
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

  // To the sender whose port is `port`, over that link's other direction.
  void pause_sender(PortId port, std::uint32_t priority);
  void resume_sender(PortId port, std::uint32_t priority);
  // `bytes` that came over `port`'s link have left this end's buffer, or never entered it.
  void return_credit(PortId port, std::uint32_t priority, Bytes bytes);
  // `port` has begun to send a packet over a link with credits.
  void use_credit(PortId port, std::uint32_t priority, Bytes bytes);
  // A link control frame that `port` sends is lost on the link.
  void frame_lost(PortId port, const Packet& frame);
  void on_link_control(const Event& event);

  // Between events. The link is known to be down: nobody will say that the port may go on, so what waits
  // there is sent, and lost.
  void abandon(PortId port);
  // The link is whole again: says anew what this end holds of the far end's packets, and until the far end
  // has said so too, holds back what is lossless.
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
