// The sender's half: messages, arbitration, pacing, acknowledgements, go-back-N.
#include <algorithm>

#include "sim/transport/packet_network_impl.h"

namespace netsim {

std::uint32_t PacketNetworkImpl::add_message(std::uint32_t id, const SendRequest& request) {
  std::uint32_t index = free_message_;
  if (index == kNone) {
    index = static_cast<std::uint32_t>(messages_.size());
    messages_.emplace_back();
  } else {
    free_message_ = messages_[index].next;
  }
  Sender& s = senders_[id];
  Message& m = messages_[index];
  m = Message{};
  m.request = request;
  m.start = loop_.now();
  m.number = s.messages++;
  m.first_psn = s.end_psn;
  m.packets = static_cast<std::uint32_t>((request.bytes + s.mtu - 1) / s.mtu);
  m.holders = s.scale_up ? 1 : 2;
  s.end_psn += m.packets;
  if (s.newest != kNone) messages_[s.newest].next = index;
  s.newest = index;
  if (s.oldest == kNone) s.oldest = index;
  if (s.current == kNone) s.current = index;
  return index;
}

void PacketNetworkImpl::send(const SendRequest& request) {
  NETSIM_CHECK(request.bytes > 0 && request.source != request.destination, "empty or self-addressed message");
  const std::uint32_t id = queue_pair(request);
  add_message(id, request);
  const Sender& s = senders_[id];
  if (!s.scale_up) {
    ++counts_.flows_started;
    counts_.bytes_sent += request.bytes;
  }
  if (!s.ready && !s.pacing && !s.failed) make_ready(id);
}

// To the end of its injector's ring.
void PacketNetworkImpl::join_ring(std::uint32_t id) {
  Sender& s = senders_[id];
  Injector& in = injectors_[s.injector];
  s.ready = true;
  s.next_ready = kNone;
  if (in.head == kNone) {
    in.head = id;
  } else {
    senders_[in.tail].next_ready = id;
  }
  in.tail = id;
}

void PacketNetworkImpl::make_ready(std::uint32_t id) {
  join_ring(id);
  const Injector& in = injectors_[senders_[id].injector];
  fabric_.set_source_ready(in.port, true);
  fabric_.wake(in.port);
}

void PacketNetworkImpl::port_free(PortId port) {
  Injector& in = injectors_[injector_of_port_[port]];
  if (in.head == kNone || (in.gate != kNone && gates_[in.gate].credit <= 0)) {
    fabric_.set_source_ready(port, false);  // make_ready() or departed() turn it on again
    return;
  }
  // Data held back by PFC: the resume wakes the port.
  if (fabric_.paused(port, kDataPriority)) return;
  const std::uint32_t id = in.head;
  in.head = senders_[id].next_ready;
  if (in.head == kNone) in.tail = kNone;
  senders_[id].ready = false;
  if (senders_[id].current != kNone) {
    const std::uint32_t packet = make_packet(id);
    const Bytes bytes = fabric_.packets()[packet].bytes;
    if (in.gate != kNone) gates_[in.gate].credit -= bytes;
    fabric_.transmit(port, packet);
    pace(id, bytes + 20);
  }
  if (in.head != kNone) {
    fabric_.wake(port);
  } else {
    fabric_.set_source_ready(port, false);
  }
}

std::uint32_t PacketNetworkImpl::make_packet(std::uint32_t id) {
  Sender& s = senders_[id];
  const Message& m = messages_[s.current];
  const std::uint32_t number = s.next_psn - m.first_psn;
  const Bytes payload = std::min<Bytes>(s.mtu, m.request.bytes - static_cast<Bytes>(number) * s.mtu);
  const std::uint32_t index = fabric_.packets().allocate();
  Packet& k = fabric_.packets()[index];
  k.queue_pair = id;
  k.psn = s.next_psn++;
  k.bytes =
      static_cast<std::uint32_t>(payload) + (s.scale_up ? 0 : kHeaderBytes + (number == 0 ? kRethBytes : 0));
  k.path = s.path;
  k.message = s.current;
  k.kind = PacketKind::data;
  k.priority = kDataPriority;
  k.marked = false;
  k.last = number + 1 == m.packets;
  if (k.last) s.current = m.next;
  if (s.scale_up) return index;
  if (static_cast<std::int32_t>(s.next_psn - s.sent_end) > 0) {
    s.sent_end = s.next_psn;
  } else {
    ++counts_.retransmissions;
  }
  if (!s.timer) arm_timer(id);
  return index;
}

// Puts the queue pair back in the ring, now or when its rate allows the next packet.
void PacketNetworkImpl::pace(std::uint32_t id, Bytes wire_bytes) {
  Sender& s = senders_[id];
  if (needs_.sent_bytes && !s.scale_up) {
    control(id, [&](CongestionContext& c) { congestion_control_->on_sent(c, wire_bytes); });
  }
  if (s.rate >= s.line_rate) {
    if (s.current != kNone) join_ring(id);
    return;
  }
  s.pacing = true;  // also after the last packet: a following message must not overtake its rate
  loop_.schedule(loop_.now() + transmission_time(wire_bytes, s.rate),
                 fabric_.origin(injectors_[s.injector].port), EventKind::pace, id);
}

void PacketNetworkImpl::on_pace(const Event& event) {
  Sender& s = senders_[event.target];
  s.digest = Fabric::digest(s.digest, event);
  s.pacing = false;
  if (s.current != kNone && !s.ready) make_ready(event.target);
}

void PacketNetworkImpl::departed(PortId port, Bytes bytes) {
  Gate& gate = gates_[gate_of_port_[port]];
  gate.credit += bytes;
  for (std::uint32_t index : gate.injectors) {
    const Injector& in = injectors_[index];
    if (in.head == kNone) continue;
    fabric_.set_source_ready(in.port, true);
    fabric_.wake(in.port);
  }
}

// ---- Acknowledgements and congestion control

CongestionContext PacketNetworkImpl::congestion_context(std::uint32_t id) {
  const Sender& s = senders_[id];
  CongestionContext context;
  context.now = loop_.now();
  context.line_rate = s.line_rate;
  context.mtu = s.mtu;
  context.next_psn = s.next_psn;
  context.rate = s.rate;
  context.state = congestion_.data() + id * state_stride_;
  return context;
}

template <class Call>
void PacketNetworkImpl::control(std::uint32_t id, Call call) {
  Sender& s = senders_[id];
  CongestionContext context = congestion_context(id);
  call(context);
  s.rate = std::clamp<BitRate>(context.rate, 1, s.line_rate);
  for (unsigned i = 0; i < kCongestionTimers; ++i) {
    if (context.timer[i] == kNever) continue;
    loop_.schedule(context.timer[i], fabric_.origin(injectors_[s.injector].port), EventKind::congestion_timer,
                   id, i);
  }
}

void PacketNetworkImpl::on_control(const Event& event) {
  const std::uint32_t id = event.target;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Sender& s = senders_[id];
  s.digest = Fabric::digest(s.digest, event);
  const Packet& k = fabric_.packets()[packet];
  const PacketKind kind = k.kind;
  const std::uint32_t psn = k.psn;
  fabric_.packets().release(packet);
  if (kind == PacketKind::cnp) {
    control(id, [&](CongestionContext& c) { congestion_control_->on_cnp(c); });
    return;
  }
  on_ack(id, psn);
  if (kind == PacketKind::nack) go_back(id);
}

void PacketNetworkImpl::on_ack(std::uint32_t id, std::uint32_t next_expected) {
  Sender* s = &senders_[id];
  const auto fresh = static_cast<std::int32_t>(next_expected - s->acknowledged);
  if (fresh <= 0) return;
  s->acknowledged = next_expected;
  // An ACK that overtook a go-back: what it covers need not be sent again.
  if (static_cast<std::int32_t>(next_expected - s->next_psn) > 0) go_back(id);
  if (needs_.acks) {
    Feedback feedback;
    feedback.acknowledged_psn = next_expected;
    feedback.packets = static_cast<std::uint32_t>(fresh);
    feedback.bytes = static_cast<Bytes>(fresh) * s->mtu;
    control(id, [&](CongestionContext& c) { congestion_control_->on_ack(c, feedback); });
  }
  while (s->oldest != kNone) {
    const Message& m = messages_[s->oldest];
    if (static_cast<std::int32_t>(s->acknowledged - (m.first_psn + m.packets)) < 0) break;
    const std::uint32_t done = s->oldest;
    const SendRequest request = m.request;
    s->oldest = m.next;
    if (s->oldest == kNone) s->newest = kNone;
    release(done);
    listener_->message_sent(request);
    s = &senders_[id];  // the listener may have sent on a new queue pair
  }
}

// Go-back-N: the next packet is the first one not acknowledged.
void PacketNetworkImpl::go_back(std::uint32_t id) {
  Sender& s = senders_[id];
  s.next_psn = s.acknowledged;
  s.current = s.oldest;
  while (s.current != kNone) {
    const Message& m = messages_[s.current];
    if (static_cast<std::int32_t>(s.next_psn - (m.first_psn + m.packets)) < 0) break;
    s.current = m.next;
  }
  if (s.current != kNone && !s.ready && !s.pacing && !s.failed) make_ready(id);
}

void PacketNetworkImpl::on_congestion_timer(const Event& event) {
  Sender& s = senders_[event.target];
  s.digest = Fabric::digest(s.digest, event);
  const auto timer = static_cast<unsigned>(event.argument);
  control(event.target, [&](CongestionContext& c) { congestion_control_->on_timer(c, timer); });
}

void PacketNetworkImpl::arm_timer(std::uint32_t id) {
  Sender& s = senders_[id];
  s.timer = true;
  s.timer_snapshot = s.acknowledged;
  loop_.schedule(loop_.now() + parameters_.retransmission_timeout,
                 fabric_.origin(injectors_[s.injector].port), EventKind::retransmission, id);
}

// Looks whether there was progress since it was set; so a queue pair costs one timer event a timeout, not one
// a packet.
void PacketNetworkImpl::on_retransmission(const Event& event) {
  const std::uint32_t id = event.target;
  Sender& s = senders_[id];
  s.digest = Fabric::digest(s.digest, event);
  s.timer = false;
  if (s.acknowledged == s.sent_end) return;
  if (s.acknowledged != s.timer_snapshot) {
    s.timeouts = 0;
  } else if (++s.timeouts > static_cast<std::uint32_t>(parameters_.retries)) {
    s.failed = true;  // as a real queue pair's error state: the stall report names it
    s.current = kNone;
    return;
  } else {
    go_back(id);
  }
  arm_timer(id);
}

}  // namespace netsim
