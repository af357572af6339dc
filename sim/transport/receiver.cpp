// The receiver's half: order, acknowledgements, congestion notifications, delivery.
#include "sim/transport/packet_network_impl.h"

namespace netsim {

void TransportPart::on_receive(const Event& event) {
  const std::uint32_t id = event.target;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Receiver& r = receivers_[id];
  r.digest = FabricPart::digest(r.digest, event);
  if (r.counted) ++outstanding_[id].received;
  const Packet& k = fabric_.packets()[packet];
  if (k.marked) {
    if (echo_in_acks_) {
      ++r.marked;
    } else if (needs_.cnp_interval != kNever &&
               (!r.cnp_sent || loop_.now() - r.last_cnp >= needs_.cnp_interval)) {
      r.cnp_sent = true;
      r.last_cnp = loop_.now();
      fabric_.count_cnp(r.back_port);
      reply(id, PacketKind::cnp, packet, 0);
    }
  }
  if (reliability_.selective) {
    accept_any(id, packet);
  } else {
    accept(id, packet);
  }
}

void TransportPart::accept(std::uint32_t id, std::uint32_t packet) {
  Receiver& r = receivers_[id];
  const Packet k = fabric_.packets()[packet];
  if (k.psn != r.expected) [[unlikely]] {
    out_of_order(id, k.psn, packet);
    fabric_.packets().release(packet);
    return;
  }
  ++r.expected;
  r.nack_sent = false;
  count_arrival(id, k.psn);
  if (k.ack_request) reply(id, PacketKind::ack, packet, 0);
  if (r.pcie) {
    fabric_.enqueue(r.gpu_port, packet);
  } else {
    fabric_.packets().release(packet);
    if (k.last) deliver(id, 1);
  }
}

// One NACK for each gap. A number that does not rise tells that the sender has started again and lost the
// expected packet once more: a gap of its own where the plan says so.
void TransportPart::out_of_order(std::uint32_t id, std::uint32_t psn, std::uint32_t packet) {
  Receiver& r = receivers_[id];
  if (static_cast<std::int32_t>(psn - r.expected) < 0) {
    reply(id, PacketKind::ack, packet, 0);  // a duplicate: the ACK may have been late
    return;
  }
  const bool again = reliability_.repeat_nack && static_cast<std::int32_t>(psn - r.latest) <= 0;
  if (!r.nack_sent || again) reply(id, PacketKind::nack, packet, psn);
  r.nack_sent = true;
  r.latest = psn;
}

void TransportPart::count_arrival(std::uint32_t id, std::uint32_t psn) {
  ++counts_.packets;
  packets_fingerprint_ +=
      hash_combine(hash_combine(receivers_[id].key, psn), static_cast<std::uint64_t>(loop_.now()));
}

// Answers the packet `cause`; a NACK names the packet that arrived out of order. Telemetry and marks go
// along.
void TransportPart::reply(std::uint32_t id, PacketKind kind, std::uint32_t cause, std::uint32_t arrived) {
  Receiver& r = receivers_[id];
  if (r.counted) ++outstanding_[id].replied;
  const std::uint32_t index = fabric_.packets().allocate();
  Packet& k = fabric_.packets()[index];
  k.psn = r.expected;
  k.path = r.back_path;
  k.kind = kind;
  k.marked = k.last = false;
  if (kind == PacketKind::cnp) {
    k.bytes = framing_.cnp;
    k.priority = fabric_.cnp_priority();
  } else {
    k.bytes = framing_.ack;
    k.priority = static_cast<std::uint8_t>(kDataPriority + r.traffic_class);
    k.message = kind == PacketKind::nack ? arrived : r.marked;
    k.marked = r.marked != 0;
    if (r.marked != 0 && parameters_.ecn_echo == EcnEcho::ack) fabric_.count_cnp(r.back_port);
    r.marked = 0;
    if (stamps_) fabric_.packets().telemetry(index) = fabric_.packets().telemetry(cause);
  }
  fabric_.enqueue(r.back_port, index);
}

// ---- Messages

// Before its last packet can be here.
void TransportPart::expect(std::uint32_t id, const Incoming& incoming) {
  const std::uint32_t index = incoming_.add(incoming);
  Receiver& r = receivers_[id];
  if (r.oldest == kNone) {
    r.oldest = index;
  } else {
    incoming_[r.newest].next = index;
  }
  r.newest = index;
}

void TransportPart::on_deliver(const Event& event) {
  const std::uint32_t id = event.target;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Receiver& r = receivers_[id];
  r.digest = FabricPart::digest(r.digest, event);
  const Packet k = fabric_.packets()[packet];
  fabric_.packets().release(packet);
  if (r.back_port == kNoId) {
    ++counts_.packets;
    if (k.last) delivered_scale_up(id);
  } else if (k.last) {
    deliver(id, reliability_.selective ? k.message : 1);
  }
}

// The next `messages` of the queue pair are complete at the destination.
void TransportPart::deliver(std::uint32_t id, std::uint32_t messages) {
  for (; messages > 0; --messages) {
    Receiver& r = receivers_[id];
    const std::uint32_t index = r.oldest;
    const Incoming done = incoming_[index];
    r.oldest = done.next;
    incoming_.release(index);
    ++counts_.flows_done;
    counts_.bytes_delivered += done.request.bytes;
    if (state_.observed) {
      set_.write(state_.delivered_reader,
                 FlowDelivered{id, done.request, done.number, done.start, loop_.now(),
                               network_.ideal_time(id, done.request.bytes)});
    }
    state_.listener->message_delivered(done.request);
  }
}

// Within a host both ends are here, and nothing is acknowledged: what came before the packet has come too.
void TransportPart::delivered_scale_up(std::uint32_t id) {
  Sender& s = senders_[id];
  Segment done = queues_.take_oldest(s);
  while (!queues_.ends_message(done)) done = queues_.take_oldest(s);
  const SendRequest request = queues_.message(done.message).request;
  queues_.forget(done.message);
  state_.listener->message_delivered(request);
  state_.listener->message_sent(request);
}

}  // namespace netsim
