// The receiver's half: order, acknowledgements, congestion notifications, delivery.
#include "sim/transport/packet_network_impl.h"

namespace netsim {

void PacketNetworkImpl::on_receive(const Event& event) {
  const std::uint32_t id = event.target;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Receiver& r = receivers_[id];
  r.digest = Fabric::digest(r.digest, event);
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

void PacketNetworkImpl::accept(std::uint32_t id, std::uint32_t packet) {
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
  const bool acknowledge = k.last || ++r.unacknowledged >= static_cast<std::uint32_t>(parameters_.ack_every);
  if (acknowledge) reply(id, PacketKind::ack, packet, 0);
  if (r.pcie) {
    fabric_.enqueue(r.gpu_port, packet);
  } else {
    fabric_.packets().release(packet);
    if (k.last) delivered(id, k.message);
  }
}

// One NACK for each gap. A number that does not rise tells that the sender has started again and lost the
// expected packet once more: a gap of its own.
void PacketNetworkImpl::out_of_order(std::uint32_t id, std::uint32_t psn, std::uint32_t packet) {
  Receiver& r = receivers_[id];
  if (static_cast<std::int32_t>(psn - r.expected) < 0) {
    reply(id, PacketKind::ack, packet, 0);  // a duplicate: the ACK may have been late
    return;
  }
  const bool again = static_cast<std::int32_t>(psn - r.latest) <= 0;
  if (!r.nack_sent || again) reply(id, PacketKind::nack, packet, psn);
  r.nack_sent = true;
  r.latest = psn;
}

void PacketNetworkImpl::count_arrival(std::uint32_t id, std::uint32_t psn) {
  ++counts_.packets;
  packets_fingerprint_ +=
      hash_combine(hash_combine(receivers_[id].key, psn), static_cast<std::uint64_t>(loop_.now()));
}

// Answers the packet `cause`; a NACK names the packet that arrived out of order. Telemetry and marks go
// along.
void PacketNetworkImpl::reply(std::uint32_t id, PacketKind kind, std::uint32_t cause, std::uint32_t arrived) {
  Receiver& r = receivers_[id];
  const std::uint32_t index = fabric_.packets().allocate();
  Packet& k = fabric_.packets()[index];
  k.queue_pair = id;
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
    r.unacknowledged = 0;
    if (stamps_) fabric_.packets().telemetry(index) = fabric_.packets().telemetry(cause);
  }
  fabric_.enqueue(r.back_port, index);
}

void PacketNetworkImpl::on_deliver(const Event& event) {
  const std::uint32_t id = event.target;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Receiver& r = receivers_[id];
  r.digest = Fabric::digest(r.digest, event);
  const Packet& k = fabric_.packets()[packet];
  const bool last = k.last;
  const std::uint32_t message = k.message;
  fabric_.packets().release(packet);
  const bool scale_up = senders_[id].scale_up;
  if (scale_up) ++counts_.packets;
  if (!last) return;
  if (scale_up || !reliability_.selective) {
    delivered(id, message);
    return;
  }
  for (std::uint32_t i = 0; i < message; ++i) {  // the number of messages that this packet completed
    const std::uint32_t completed = selective_[id].completed.front();
    selective_[id].completed.pop_front();
    delivered(id, completed);
  }
}

void PacketNetworkImpl::delivered(std::uint32_t id, std::uint32_t message) {
  const SendRequest request = messages_[message].request;
  const bool scale_up = senders_[id].scale_up;
  messages_[message].delivered = loop_.now();
  if (!scale_up) {
    ++counts_.flows_done;
    counts_.bytes_delivered += request.bytes;
  } else {
    Sender& s = senders_[id];
    s.oldest = messages_[message].next;
    if (s.oldest == kNone) s.newest = kNone;
  }
  release(id, message);
  listener_->message_delivered(request);
  if (scale_up) listener_->message_sent(request);
}

// One of its two ends is done with the message. With both it is over, and a flow on the scale-out fabric is
// told of.
void PacketNetworkImpl::release(std::uint32_t id, std::uint32_t message) {
  Message& m = messages_[message];
  if (--m.holders != 0) return;
  if (observer_ && !senders_[id].scale_up) {
    observer_({hash_combine(receivers_[id].key, m.number), m.request, names_[id].number, m.start, m.delivered,
               m.acknowledged, ideal_time(id, m.request.bytes)});
  }
  m.next = free_message_;
  free_message_ = message;
}

}  // namespace netsim
