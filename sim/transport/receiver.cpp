// The receiver's half: order, acknowledgements, congestion notifications, delivery.
#include "sim/transport/packet_network_impl.h"

namespace netsim {

void PacketNetworkImpl::on_receive(const Event& event) {
  const std::uint32_t id = event.target;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Receiver& r = receivers_[id];
  r.digest = Fabric::digest(r.digest, event);
  const Packet& k = fabric_.packets()[packet];
  if (k.marked && needs_.cnp_interval != kNever &&
      (!r.cnp_sent || loop_.now() - r.last_cnp >= needs_.cnp_interval)) {
    r.cnp_sent = true;
    r.last_cnp = loop_.now();
    ++counts_.cnps;
    reply(id, PacketKind::cnp, kCnpBytes, kCnpPriority);
  }
  accept(id, packet);
}

void PacketNetworkImpl::accept(std::uint32_t id, std::uint32_t packet) {
  Receiver& r = receivers_[id];
  const Packet k = fabric_.packets()[packet];
  if (k.psn != r.expected) [[unlikely]] {
    fabric_.packets().release(packet);
    if (static_cast<std::int32_t>(k.psn - r.expected) < 0) {
      reply(id, PacketKind::ack, kAckBytes, kDataPriority);  // a duplicate: the ACK may have been late
    } else if (!r.nack_sent) {
      r.nack_sent = true;
      reply(id, PacketKind::nack, kAckBytes, kDataPriority);
    }
    return;
  }
  ++r.expected;
  r.nack_sent = false;
  ++counts_.packets;
  packets_fingerprint_ += hash_combine(hash_combine(r.key, k.psn), static_cast<std::uint64_t>(loop_.now()));
  const bool acknowledge = k.last || ++r.unacknowledged >= static_cast<std::uint32_t>(parameters_.ack_every);
  if (r.pcie) {
    fabric_.enqueue(r.gpu_port, packet);
  } else {
    fabric_.packets().release(packet);
  }
  if (acknowledge) {
    r.unacknowledged = 0;
    reply(id, PacketKind::ack, kAckBytes, kDataPriority);
  }
  if (!r.pcie && k.last) delivered(id, k.message);
}

void PacketNetworkImpl::reply(std::uint32_t id, PacketKind kind, std::uint32_t bytes, std::uint8_t priority) {
  const Receiver& r = receivers_[id];
  const std::uint32_t index = fabric_.packets().allocate();
  Packet& k = fabric_.packets()[index];
  k.queue_pair = id;
  k.psn = r.expected;
  k.bytes = bytes;
  k.path = r.back_path;
  k.kind = kind;
  k.priority = priority;
  k.marked = k.last = false;
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
  if (senders_[id].scale_up) ++counts_.packets;
  if (last) delivered(id, message);
}

void PacketNetworkImpl::delivered(std::uint32_t id, std::uint32_t message) {
  const SendRequest request = messages_[message].request;
  const bool scale_up = senders_[id].scale_up;
  if (!scale_up) {
    ++counts_.flows_done;
    counts_.bytes_delivered += request.bytes;
    if (observer_) {
      const Message& m = messages_[message];
      observer_(
          {hash_combine(receivers_[id].key, m.number), request, names_[id].number, m.start, loop_.now()});
    }
  } else {
    Sender& s = senders_[id];
    s.oldest = messages_[message].next;
    if (s.oldest == kNone) s.newest = kNone;
  }
  release(message);
  listener_->message_delivered(request);
  if (scale_up) listener_->message_sent(request);
}

void PacketNetworkImpl::release(std::uint32_t message) {
  if (--messages_[message].holders != 0) return;
  messages_[message].next = free_message_;
  free_message_ = message;
}

}  // namespace netsim
