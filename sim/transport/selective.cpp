// Selective repeat, both halves: the sender knows what arrived out of order and repeats the gaps before it;
// the receiver keeps what comes out of order.
#include <algorithm>

#include "sim/transport/transport_part.h"

namespace netsim {
namespace {

bool earlier(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

}  // namespace

// ---- Sender

// What has not come back: not acknowledged and, unless the plan counts cumulatively, not known to have
// arrived out of order.
std::uint32_t TransportPart::in_flight(std::uint32_t id) const {
  const Sender& s = senders_[id];
  const std::uint32_t sent = s.next_psn - s.acknowledged;
  const bool leave_out = reliability_.selective && !reliability_.cumulative && !s.scale_up;
  return leave_out ? sent - selective_[id].arrived_count : sent;
}

// Moves to the next gap that is to be repeated; false if there is none.
bool TransportPart::has_gap(std::uint32_t id) {
  Selective& v = selective_[id];
  const Sender& s = senders_[id];
  if (earlier(v.repeat_next, s.acknowledged)) v.repeat_next = s.acknowledged;
  while (earlier(v.repeat_next, v.repeat_end) && v.arrived.get(s.acknowledged, v.repeat_next) != 0)
    ++v.repeat_next;
  return earlier(v.repeat_next, v.repeat_end);
}

std::uint32_t TransportPart::take_gap(std::uint32_t id) { return selective_[id].repeat_next++; }

// A NACK names a packet that arrived: what was sent before it and did not is taken for lost.
void TransportPart::note_arrival(std::uint32_t id, std::uint32_t psn) {
  Selective& v = selective_[id];
  const Sender& s = senders_[id];
  if (earlier(psn, s.acknowledged) || v.arrived.get(s.acknowledged, psn) != 0) return;
  v.arrived.set(s.acknowledged, psn, 1);
  ++v.arrived_count;
  const std::uint32_t lost_before = psn - std::min(reliability_.reorder_tolerance, psn - s.acknowledged);
  if (earlier(v.repeat_end, s.acknowledged)) v.repeat_end = s.acknowledged;
  if (earlier(v.repeat_end, lost_before)) v.repeat_end = lost_before;
}

// All before `before` is acknowledged.
void TransportPart::forget_arrivals(std::uint32_t id, std::uint32_t before) {
  Selective& v = selective_[id];
  const std::uint32_t base = senders_[id].acknowledged;
  for (std::uint32_t psn = base; v.arrived_count > 0 && psn != before; ++psn) {
    if (v.arrived.get(base, psn) == 0) continue;
    v.arrived.clear(psn);
    --v.arrived_count;
  }
}

// After a timeout: what was sent before the timer was set and has not arrived is taken for lost, and all that
// was sent if the last of it had the time of a round trip to be acknowledged.
void TransportPart::repeat_overdue(std::uint32_t id) {
  Selective& v = selective_[id];
  v.repeat_next = senders_[id].acknowledged;
  const Sender& s = senders_[id];
  v.repeat_end = loop_.now() - v.last_sent > state_.path_constants(id).base_rtt ? s.next_psn : v.timer_end;
}

// ---- Receiver

void TransportPart::accept_any(std::uint32_t id, std::uint32_t packet) {
  Receiver& r = receivers_[id];
  Selective& v = selective_[id];
  const Packet k = fabric_.packets()[packet];
  const bool late = earlier(k.psn, r.expected);
  if (late || (k.psn != r.expected && v.kept.get(r.expected, k.psn) != Kept::absent)) {  // it came twice
    if (late) {
      reply(id, PacketKind::ack, packet, 0);
    } else {
      reply(id, PacketKind::nack, packet, k.psn);
    }
    fabric_.packets().release(packet);
    return;
  }
  count_arrival(id, k.psn);
  std::uint32_t complete = 0;
  if (k.psn == r.expected) {
    bool asked = k.ack_request;
    complete = advance(id, k.last, asked);
    if (asked) reply(id, PacketKind::ack, packet, 0);
  } else {
    const Kept inner = k.ack_request ? Kept::asking : Kept::inner;
    v.kept.set(r.expected, k.psn, k.last ? Kept::last : inner);
    reply(id, PacketKind::nack, packet, k.psn);
  }
  if (r.pcie) {
    Packet& onward = fabric_.packets()[packet];
    onward.last = complete > 0;
    onward.message = complete;
    fabric_.enqueue(r.gpu_port, packet);
    return;
  }
  fabric_.packets().release(packet);
  deliver(id, complete);
}

// The expected packet is here, `last` of its message or not. Returns the number of messages whose last packet
// is now in order. `asked` becomes true where one that was kept asked for an ACK.
std::uint32_t TransportPart::advance(std::uint32_t id, bool last, bool& asked) {
  Receiver& r = receivers_[id];
  PsnWindow<Kept>& kept = selective_[id].kept;
  std::uint32_t complete = last ? 1 : 0;
  for (++r.expected;; ++r.expected) {
    const Kept entry = kept.get(r.expected, r.expected);
    if (entry == Kept::absent) return complete;
    if (entry == Kept::last) ++complete;
    if (entry != Kept::inner) asked = true;
    kept.clear(r.expected);
  }
}

}  // namespace netsim
