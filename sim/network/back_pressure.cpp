#include "sim/network/back_pressure.h"

#include <algorithm>

#include "sim/network/port_arbiter.h"

namespace netsim {

void BackPressure::pause_sender(PortId port, std::uint32_t priority) {
  send_frame(port, make_link_control(LinkControl::pause, priority), 0,
             state_.rules_at(port).switches.pfc_frame);
}

void BackPressure::resume_sender(PortId port, std::uint32_t priority) {
  send_frame(port, make_link_control(LinkControl::resume, priority), 0,
             state_.rules_at(port).switches.pfc_frame);
}

void BackPressure::send_frame(PortId to, std::uint32_t message, std::uint32_t credit, Bytes frame_bytes) {
  PacketArena& packets = ports_.packets();
  const std::uint32_t index = packets.allocate();
  Packet& frame = packets[index];
  frame = Packet{};
  frame.bytes = static_cast<std::uint32_t>(frame_bytes);
  frame.kind = PacketKind::link_control;
  frame.set_priority(kControlPriority);
  frame.message = message;
  frame.psn = credit;
  ports_.enqueue(to ^ 1U, index);
}

void BackPressure::use_credit(PortId port, std::uint32_t priority, Bytes bytes) {
  if (buffers_.use_credit(port, priority, bytes)) return;
  ++state_.pauses_of(port).count;
  ports_.hold(port, priority);
}

void BackPressure::return_credit(PortId port, std::uint32_t priority, Bytes bytes) {
  const std::uint32_t due = buffers_.free_credit(port, priority, bytes);
  if (due == 0) return;
  const std::uint32_t message = make_link_control(LinkControl::credit, priority);
  if (const Bytes frame = buffers_.credit_frame(port, priority); frame != 0) {
    send_frame(port, message, due, frame);
    return;
  }
  const PortId back = port ^ 1U;
  remote_event_.send_event(back,
                           {loop_.now() + state_.links[back].delay, ports_.origin(back).next_key(), port,
                            EventKind::link_control, static_cast<std::uint64_t>(due) << 8 | message});
}

// Adds a lost frame's credit to what is owed. InfiniBand's frames carry totals, so a later frame makes up for
// a lost one.
void BackPressure::frame_lost(PortId port, const Packet& frame) {
  if (frame.psn != 0) buffers_.owe_credit(port ^ 1U, frame.message >> 2, frame.psn);
}

void BackPressure::on_link_control(const Event& event) {
  const PortId port = event.target;
  ports_.update_digest(port, event);
  const auto priority = static_cast<std::uint32_t>(event.argument >> 2 & 63);
  switch (static_cast<LinkControl>(event.argument & 3)) {
    case LinkControl::pause:
      receive_pause(port, priority);
      return;
    case LinkControl::resume:
      release(port, priority);
      return;
    case LinkControl::credit:
      if (buffers_.add_credit(port, priority, static_cast<Bytes>(event.argument >> 8)))
        release(port, priority);
      return;
  }
}

void BackPressure::receive_pause(PortId port, std::uint32_t priority) {
  fabric::Pauses& pauses = state_.pauses_of(port);
  if (pauses.abandoned) return;
  const bool held = ports_.is_held(port, priority);
  if (held && (pauses.awaiting_peer_state >> priority & 1) == 0) return;  // a repeated pause
  pauses.awaiting_peer_state = static_cast<std::uint8_t>(pauses.awaiting_peer_state & ~(1U << priority));
  ++pauses.count;
  ports_.hold(port, priority);
}

// Ends a hold. Time during which the port only waited for the far end's state is not counted as a pause.
void BackPressure::release(PortId port, std::uint32_t priority) {
  if (!ports_.is_held(port, priority)) return;
  fabric::Pauses& pauses = state_.pauses_of(port);
  if ((pauses.awaiting_peer_state >> priority & 1) == 0)
    pauses.time += loop_.now() - state_.paused_since[state_.queue_index(port, priority)];
  pauses.awaiting_peer_state = static_cast<std::uint8_t>(pauses.awaiting_peer_state & ~(1U << priority));
  ports_.release(port, priority);
}

void BackPressure::abandon(PortId port) {
  state_.pauses_of(port).abandoned = true;
  for (std::uint32_t priority = kDataPriority; priority < state_.priorities; ++priority)
    release(port, priority);
}

void BackPressure::come_up(PortId port) {
  fabric::Pauses& pauses = state_.pauses_of(port);
  pauses.abandoned = false;
  const PortId back = port ^ 1U;
  for (std::uint32_t priority = kDataPriority; priority < state_.priorities; ++priority) {
    if (state_.is_lossless(port, priority)) {
      if (!ports_.is_held(port, priority)) {
        ports_.hold(port, priority);
        pauses.awaiting_peer_state = static_cast<std::uint8_t>(pauses.awaiting_peer_state | 1U << priority);
      }
      buffers_.is_pausing(back, priority) ? pause_sender(back, priority) : resume_sender(back, priority);
    }
    if ((state_.ports[port].flags & fabric::kCredits) != 0 && !buffers_.has_credit(port, priority) &&
        !ports_.is_held(port, priority)) {
      ports_.hold(port, priority);
    }
    if ((state_.ports[back].flags & fabric::kCredits) == 0) continue;
    if (const std::uint32_t owed = buffers_.take_owed_credit(back, priority); owed > 0) {
      send_frame(back, make_link_control(LinkControl::credit, priority), owed,
                 std::max<Bytes>(buffers_.credit_frame(back, priority), 1));
    }
  }
}

}  // namespace netsim
