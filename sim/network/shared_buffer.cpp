// The switches' buffers: who may wait in them, who is paused, who is given credits, who is marked.
#include "sim/core/errors.h"
#include "sim/network/fabric_part.h"

namespace netsim {

void FabricPart::mark(PortId port, Packet& packet, Bytes queue_bytes) {
  Rare& rare = rare_[port];
  if (queue_bytes <= rare.red.kmin) return;  // a threshold beyond 4 GB
  bool marked = queue_bytes > rare.red.kmax || rare.red.kmin == rare.red.kmax;
  if (!marked) {
    const double probability = rare.red.pmax * static_cast<double>(queue_bytes - rare.red.kmin) /
                               static_cast<double>(rare.red.kmax - rare.red.kmin);
    marked = rare.random.uniform() < probability;
  }
  if (!marked) return;
  packet.marked = true;
  ++rare.marks;
}

// What is not lossless: with credits there is room, by the sender's account; else up to the threshold.
bool FabricPart::admit_other(PortId port, const Packet& packet) {
  if (state_.parameters.flow_control == FlowControl::credits) {
    Ingress& in = ingress_[class_index(packet.ingress, packet.priority)];
    in.used += packet.bytes;
    NETSIM_CHECK(in.used <= in.headroom, "a credit buffer overflows");
    in.max_headroom_used = std::max(in.max_headroom_used, static_cast<std::uint32_t>(in.used));
    return true;
  }
  Buffer& buffer = buffers_[ports_[port].buffer];
  const Bytes queued = queue(port, packet.priority).bytes;
  if (queued + packet.bytes > buffer.threshold() || packet.bytes > buffer.free()) return false;
  buffer.shared_used += packet.bytes;
  return true;
}

void FabricPart::leave_other(PortId port, const Packet& packet) {
  if (state_.parameters.flow_control == FlowControl::credits) {
    ingress_[class_index(packet.ingress, packet.priority)].used -= packet.bytes;
  } else {
    buffers_[ports_[port].buffer].shared_used -= packet.bytes;
  }
}

void FabricPart::pause_sender(Ingress& in, const Packet& packet) {
  in.pausing = true;
  send_pfc(packet.ingress, packet.priority, true);
}

void FabricPart::resume_sender(Ingress& in, const Packet& packet) {
  in.pausing = false;
  send_pfc(packet.ingress, packet.priority, false);
}

void FabricPart::send_pfc(PortId paused_port, std::uint32_t priority, bool pause) {
  send_control(paused_port, make_link_control(pause ? LinkControl::pause : LinkControl::resume, priority), 0,
               state_.parameters.pfc_frame);
}

// Sends a frame to the node whose port is meant, over that link's other direction.
void FabricPart::send_control(PortId to, std::uint32_t message, std::uint32_t credit, Bytes frame_bytes) {
  const std::uint32_t index = packets_.allocate();
  Packet& frame = packets_[index];
  frame = Packet{};
  frame.bytes = static_cast<std::uint32_t>(frame_bytes);
  frame.kind = PacketKind::link_control;
  frame.priority = kControlPriority;
  frame.message = message;
  frame.psn = credit;
  enqueue(to ^ 1U, index);
}

void FabricPart::consume_credit(PortId port, std::uint32_t priority, Bytes bytes) {
  Credits& credits = state_.credits[class_index(port, priority)];
  credits.left -= bytes;
  if (credits.left < credits.largest) {
    ++rare_[port].pauses;
    set_paused(port, priority);
  }
}

// The credit last: its frame may leave by the same port and then comes after the packet.
void FabricPart::transmit_and_return_credit(PortId port, std::uint32_t packet) {
  const Packet k = packets_[packet];
  transmit(port, packet);
  return_credit(k.ingress, k.priority, k.bytes);
}

// `bytes` that came over `port`'s link have left the far end's buffer.
void FabricPart::return_credit(PortId port, std::uint32_t priority, Bytes bytes) {
  if (priority < kDataPriority || state_.credits.empty()) return;
  const Credits& credits =
      state_.credits[class_index(port, priority)];  // of its limits only: it is the far end's
  if (credits.quantum == 0) return;
  Bytes& owed = ingress_[class_index(port, priority)].headroom_used;
  owed += bytes;
  if (owed < credits.quantum) return;
  const auto given = static_cast<std::uint32_t>(owed);
  owed = 0;
  const std::uint32_t message = make_link_control(LinkControl::credit, priority);
  if (credits.frame != 0) {
    send_control(port, message, given, credits.frame);
    return;
  }
  send_event(port ^ 1U, {loop_.now() + rare_[port ^ 1U].link_delay, ports_[port ^ 1U].origin.next_key(), port,
                         EventKind::link_control, static_cast<std::uint64_t>(given) << 8 | message});
}

void FabricPart::receive_credit(PortId port, std::uint32_t priority, Bytes bytes) {
  Credits& credits = state_.credits[class_index(port, priority)];
  credits.left += bytes;
  if (credits.left >= credits.largest) set_running(port, priority);
}

}  // namespace netsim
