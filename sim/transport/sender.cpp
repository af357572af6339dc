// The sender's half: messages, arbitration, windows, pacing, acknowledgements, congestion control, go-back-N.
#include <algorithm>
#include <bit>
#include <utility>

#include "sim/transport/packet_network_impl.h"

namespace netsim {

void TransportPart::add_message(std::uint32_t id, const SendRequest& request) {
  Sender& s = senders_[id];
  Message m;
  m.request = request;
  m.start = loop_.now();
  m.first_psn = s.end_psn;
  m.packets = static_cast<std::uint32_t>((request.bytes + s.mtu - 1) / s.mtu);
  const std::uint32_t index = messages_.add(m);
  s.end_psn += m.packets;
  if (s.newest != kNone) messages_[s.newest].next = index;
  s.newest = index;
  if (s.oldest == kNone) set_oldest(s, index);
  if (s.current == kNone) set_current(s, index);
  if (!s.scale_up) announce(id, m);
}

// The receiver is told what will come, so that packets need not carry it.
void TransportPart::announce(std::uint32_t id, const Message& m) {
  const Incoming incoming{m.request, m.start, senders_[id].messages++, kNone};
  const std::uint32_t to = state_.set_of_gpu[m.request.destination];
  if (to == set_.id()) {
    expect(id, incoming);
  } else {
    set_.post(to, kNoEvent).event = {kNoEvent, 0, id, EventKind::notice, set_.attach(to, incoming)};
  }
}

void TransportPart::send(const SendRequest& request) {
  NETSIM_CHECK(request.bytes > 0 && request.source != request.destination, "empty or self-addressed message");
  const std::uint32_t id = network_.queue_pair(request);
  add_message(id, request);
  const Sender& s = senders_[id];
  if (!s.scale_up) {
    ++counts_.flows_started;
    counts_.bytes_sent += request.bytes;
  }
  make_ready(id);
}

// What most packets and acknowledgements need to know of a message lies in the queue pair.
void TransportPart::set_current(Sender& s, std::uint32_t message) {
  s.current = message;
  if (message == kNone) return;
  s.current_first = messages_[message].first_psn;
  s.current_end = s.current_first + messages_[message].packets;
}

void TransportPart::set_oldest(Sender& s, std::uint32_t message) {
  s.oldest = message;
  if (message == kNone) {
    s.newest = kNone;
  } else {
    s.oldest_end = messages_[message].first_psn + messages_[message].packets;
  }
}

// ---- Arbitration: a queue pair is in its injector's ring while it may send.

// Less than the window is in flight.
[[gnu::always_inline]] inline bool TransportPart::window_open(std::uint32_t id, const Sender& s) const {
  const bool selective = reliability_.selective && !s.scale_up;
  return (selective ? in_flight(id) : s.next_psn - s.acknowledged) < s.window;
}

// A window that shrank below what is in flight leaves room for one packet that asks, where nothing in flight
// does: so a queue pair that may not send has always asked for what will let it go on.
bool TransportPart::has_work(std::uint32_t id) {
  const Sender& s = senders_[id];
  if (s.failed) return false;
  if (reliability_.selective && !s.scale_up && has_gap(id)) return true;
  return s.current != kNone && (window_open(id, s) || s.next_psn - s.acknowledged <= s.unrequested);
}

// To the end of its injector's ring.
void TransportPart::join_ring(std::uint32_t id) {
  Sender& s = senders_[id];
  Injector& in = injectors_[s.injector];
  Injector::Ring& ring = in.rings[s.traffic_class];
  s.ready = true;
  s.next_ready = kNone;
  if (ring.head == kNone) {
    ring.head = id;
    in.ready |= 1U << s.traffic_class;
  } else {
    senders_[ring.tail].next_ready = id;
  }
  ring.tail = id;
}

// If it may send and is not waiting for its turn or its pace already.
void TransportPart::make_ready(std::uint32_t id) {
  const Sender& s = senders_[id];
  if (s.ready || s.pacing || !has_work(id)) return;
  join_ring(id);
  const Injector& in = injectors_[s.injector];
  if (!gate_open(in)) return;  // departed() wakes the port
  fabric_.set_source_ready(in.port, true);
  fabric_.wake(in.port);
}

// Of the classes that have queue pairs waiting and are not held back, the one whose turn it is. kNone: all
// are held back.
std::uint32_t TransportPart::next_class(Injector& in) {
  std::uint32_t ready = in.ready & ~fabric_.paused_classes(in.port);
  if ((ready & (ready - 1)) == 0)
    return ready != 0 ? static_cast<std::uint32_t>(std::countr_zero(ready)) : kNone;
  for (std::uint32_t c = 0; c < kMaxClasses; ++c) {
    while ((in.ready >> c & 1) != 0 && !has_work(in.rings[c].head)) take_from_ring(in, c);
  }
  ready &= in.ready;
  if (ready == 0) return kNone;
  return fabric_.select_class(in.port, ready,
                              [&](std::uint32_t c) { return next_packet_bytes(in.rings[c].head); });
}

std::uint32_t TransportPart::take_from_ring(Injector& in, std::uint32_t traffic_class) {
  Injector::Ring& ring = in.rings[traffic_class];
  const std::uint32_t id = ring.head;
  ring.head = senders_[id].next_ready;
  senders_[id].ready = false;
  if (ring.head == kNone) {
    ring.tail = kNone;
    in.ready &= ~(1U << traffic_class);
  } else {
    __builtin_prefetch(&senders_[ring.head], 1);
  }
  return id;
}

void TransportPart::port_free(PortId port) {
  Injector& in = injectors_[state_.injector_of_port[port]];
  while (in.ready != 0 && gate_open(in)) {
    const std::uint32_t traffic_class = next_class(in);
    if (traffic_class == kNone) return;  // held back: the resume, or the credit, wakes the port
    const std::uint32_t id = take_from_ring(in, traffic_class);
    if (!has_work(id)) continue;  // its window has shrunk
    const std::uint32_t packet = next_packet(id);
    const Bytes bytes = fabric_.packets()[packet].bytes;
    if (in.gate != kNone) gates_[in.gate].credit -= bytes;
    fabric_.transmit(port, packet);
    pace(id, bytes + senders_[id].overhead);
    if ((in.ready >> traffic_class & 1) == 0) fabric_.class_emptied(port, traffic_class);
    if (in.ready == 0 || !gate_open(in)) break;
    fabric_.wake(port);
    return;
  }
  fabric_.set_source_ready(port, false);  // make_ready() or departed() turn it on again
}

void TransportPart::departed(PortId port, Bytes bytes) {
  Gate& gate = gates_[state_.gate_of_port[port]];
  gate.credit += bytes;
  for (std::uint32_t index : gate.injectors) {
    const Injector& in = injectors_[index];
    if (in.ready == 0) continue;
    fabric_.set_source_ready(in.port, true);
    fabric_.wake(in.port);
  }
}

// ---- Packets

// Whether the packet before next_psn asks for an acknowledgement: the last of a message, one of at most so
// many that the NIC's setting says, and one after which the window lets nothing out. Counted since the last
// request, as Linux's rxe does; the vendor's register only promises one in 2^n packets.
[[gnu::always_inline]] inline bool TransportPart::asks(std::uint32_t id, Sender& s, bool last) const {
  if (s.unrequested + 1U < acknowledge_every_ && !last && window_open(id, s)) {
    ++s.unrequested;
    return false;
  }
  s.unrequested = 0;
  return true;
}

// What is missing goes before what is new.
std::uint32_t TransportPart::next_packet(std::uint32_t id) {
  Sender& s = senders_[id];
  if (reliability_.selective && !s.scale_up && has_gap(id)) {
    const std::uint32_t psn = take_gap(id);
    ++counts_.retransmissions;
    return make_packet(id, extent(message_of(id, psn)), psn, true);
  }
  const Extent message{s.current, s.current_first, s.current_end};
  const std::uint32_t psn = s.next_psn++;
  if (psn + 1 == message.end) set_current(s, messages_[message.index].next);
  if (!s.scale_up) {
    if (static_cast<std::int32_t>(s.next_psn - s.sent_end) > 0) {
      s.sent_end = s.next_psn;
    } else {
      ++counts_.retransmissions;
    }
  }
  return make_packet(id, message, psn, !s.scale_up && asks(id, s, psn + 1 == message.end));
}

std::uint32_t TransportPart::message_of(std::uint32_t id, std::uint32_t psn) const {
  std::uint32_t message = senders_[id].oldest;
  while (psn - messages_[message].first_psn >= messages_[message].packets) message = messages_[message].next;
  return message;
}

TransportPart::Extent TransportPart::extent(std::uint32_t message) const {
  const std::uint32_t first = messages_[message].first_psn;
  return {message, first, first + messages_[message].packets};
}

// As buffers count them. All packets of a message but the last are full.
Bytes TransportPart::packet_bytes(const Sender& s, const Extent& message, std::uint32_t psn) const {
  const std::uint32_t number = psn - message.first;
  Bytes payload = s.mtu;
  if (psn + 1 == message.end)
    payload = messages_[message.index].request.bytes - static_cast<Bytes>(number) * s.mtu;
  return s.scale_up ? payload : payload + framing_.header + (number == 0 ? framing_.first_header : 0);
}

// Of what next_packet() would make.
Bytes TransportPart::next_packet_bytes(std::uint32_t id) {
  const Sender& s = senders_[id];
  const bool gap = reliability_.selective && !s.scale_up && has_gap(id);
  const std::uint32_t psn = gap ? selective_[id].repeat_next : s.next_psn;
  return packet_bytes(s, extent(gap ? message_of(id, psn) : s.current), psn);
}

std::uint32_t TransportPart::make_packet(std::uint32_t id, const Extent& message, std::uint32_t psn,
                                         bool ask) {
  const Sender& s = senders_[id];
  const std::uint32_t index = fabric_.packets().allocate();
  Packet& k = fabric_.packets()[index];
  k.psn = psn;
  k.bytes = static_cast<std::uint32_t>(packet_bytes(s, message, psn));
  k.path = s.path;
  k.kind = PacketKind::data;
  k.priority = static_cast<std::uint8_t>(kDataPriority + s.traffic_class);
  k.marked = false;
  k.last = psn + 1 == message.end;
  k.ack_request = ask;
  if (s.scale_up) return index;
  if (s.counted) ++traffic_[id].sent;
  if (stamps_) {
    Telemetry& t = fabric_.packets().telemetry(index);
    t.sent = loop_.now();
    t.hops = 0;
  }
  if (reliability_.selective) selective_[id].last_sent = loop_.now();
  if (!s.timer) arm_timer(id);
  return index;
}

// An event at the queue pair itself.
void TransportPart::schedule_timer(std::uint32_t id, Time time, EventKind kind, std::uint64_t argument) {
  const Sender& s = senders_[id];
  if (s.counted) ++traffic_[id].timers;
  if (kind == EventKind::retransmission && stand_in_line(id, time)) return;
  loop_.schedule(time, fabric_.origin(injectors_[s.injector].port), kind, id, argument);
}

// ---- Pacing

// Puts the queue pair back in the ring, now or when its rate allows the next packet.
void TransportPart::pace(std::uint32_t id, Bytes wire_bytes) {
  Sender& s = senders_[id];
  if (needs_.sent_bytes && !s.scale_up) {
    control(id, [&](CongestionContext& c) { congestion_control_->on_sent(c, wire_bytes); });
  }
  if (s.scale_up || (s.rate >= s.line_rate && !needs_.pace_again)) {
    if (has_work(id)) join_ring(id);
    return;
  }
  s.pacing = true;  // also after the last packet: a following message must not overtake its rate
  s.last_paced = needs_.paces_packets ? s.mtu : static_cast<std::uint32_t>(wire_bytes);
  s.pace_at = loop_.now() + fabric_.serialisation(s.last_paced, s.rate);
  schedule_timer(id, s.pace_at, EventKind::pace);
}

// The rate has changed while the wait for the next packet lasts: as much longer or shorter as the last packet
// takes.
void TransportPart::move_pace(std::uint32_t id, BitRate before) {
  Sender& s = senders_[id];
  if (!s.pacing || s.rate == before) return;
  s.pace_at += fabric_.serialisation(s.last_paced, s.rate) - fabric_.serialisation(s.last_paced, before);
  s.pace_at = std::max(s.pace_at, loop_.now());
  schedule_timer(id, s.pace_at, EventKind::pace);
}

void TransportPart::on_pace(const Event& event) {
  Sender& s = senders_[event.target];
  s.digest = FabricPart::digest(s.digest, event);
  timer_ended(event.target);
  if (!s.pacing || event.time != s.pace_at) return;  // the wait was moved
  s.pacing = false;
  make_ready(event.target);
}

// ---- Congestion control

CongestionContext TransportPart::congestion_context(std::uint32_t id) {
  const Sender& s = senders_[id];
  CongestionContext context;
  context.now = loop_.now();
  context.line_rate = s.line_rate;
  const PathConstants& path = state_.path_constants(id);
  context.base_rtt = path.base_rtt;
  context.mtu = s.mtu;
  context.hops = path.hops;
  context.next_psn = s.next_psn;
  context.rate = s.rate;
  context.window = s.congestion_window;
  context.state = state_.congestion_state(id);
  return context;
}

void TransportPart::start_congestion_control(std::uint32_t id) {
  CongestionContext context = congestion_context(id);
  congestion_control_->start(context);
  senders_[id].rate = std::clamp<BitRate>(context.rate, 1, senders_[id].line_rate);
  set_window(id, context.window);
}

// Asks whether congestion control can work with the queue pair's path, unless it objects to a worse one.
void TransportPart::check_path(std::uint32_t id, Time round_trip) {
  const Names& n = state_.names[id];
  PathObjection found{round_trip, n.source, n.destination, {}};
  if (!found.before(objection_)) return;
  found.text = congestion_control_->objection(congestion_context(id), round_trip);
  if (!found.text.empty()) objection_ = std::move(found);
}

template <class Call>
void TransportPart::control(std::uint32_t id, Call call) {
  Sender& s = senders_[id];
  CongestionContext context = congestion_context(id);
  call(context);
  const BitRate before = s.rate;
  s.rate = std::clamp<BitRate>(context.rate, 1, s.line_rate);
  if (s.rate != before || context.window != s.congestion_window) {
    set_window(id, context.window);
    if (needs_.pace_again) move_pace(id, before);
  }
  for (unsigned i = 0; i < kCongestionTimers; ++i) {
    if (context.timer[i] == kNever) continue;
    schedule_timer(id, context.timer[i], EventKind::congestion_timer, i);
  }
}

// The least of congestion control's window, the transport's and selective repeat's cap, in packets, rounded
// up: a packet may be started while less than the window is unacknowledged, as HPCC's senders do
// (alibaba-edu/High-Precision-Congestion-Control, IsWinBound). A window of whole packets is rounded down.
void TransportPart::set_window(std::uint32_t id, Bytes window) {
  __extension__ using Wide = __int128;
  Sender& s = senders_[id];
  s.congestion_window = window;
  Bytes least = needs_.whole_packets ? window / s.mtu * s.mtu : window;
  if (parameters_.window != 0) {
    const Bytes own = parameters_.window_scales
                          ? static_cast<Bytes>(static_cast<Wide>(parameters_.window) * s.rate / s.line_rate)
                          : parameters_.window;
    least = std::min(least, own);
  }
  if (reliability_.bdp_cap > 0) {
    const double packets =
        static_cast<double>(s.line_rate) * static_cast<double>(state_.path_constants(id).base_rtt) /
        (8.0 * static_cast<double>(kSecond)) / static_cast<double>(s.mtu + framing_.header + s.overhead);
    const double cap = reliability_.bdp_cap * packets * static_cast<double>(s.mtu);
    if (cap < static_cast<double>(least)) least = static_cast<Bytes>(cap);
  }
  const Bytes packets = least / s.mtu + (least % s.mtu != 0 ? 1 : 0);
  s.window = static_cast<std::uint32_t>(std::clamp<Bytes>(packets, 1, UINT32_MAX));
}

void TransportPart::on_congestion_timer(const Event& event) {
  Sender& s = senders_[event.target];
  s.digest = FabricPart::digest(s.digest, event);
  timer_ended(event.target);
  const auto timer = static_cast<unsigned>(event.argument);
  control(event.target, [&](CongestionContext& c) { congestion_control_->on_timer(c, timer); });
  make_ready(event.target);
}

// ---- Acknowledgements

void TransportPart::on_control(const Event& event) {
  const std::uint32_t id = event.target;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Sender& s = senders_[id];
  s.digest = FabricPart::digest(s.digest, event);
  if (s.counted) ++traffic_[id].heard;
  const Packet k = fabric_.packets()[packet];
  if (k.kind == PacketKind::cnp) {
    control(id, [&](CongestionContext& c) { congestion_control_->on_cnp(c); });
  } else {
    on_ack(id, k, packet);
  }
  fabric_.packets().release(packet);
  make_ready(id);
}

void TransportPart::on_ack(std::uint32_t id, const Packet& ack, std::uint32_t packet) {
  Sender& s = senders_[id];
  const bool nack = ack.kind == PacketKind::nack;
  const auto fresh = std::max(static_cast<std::int32_t>(ack.psn - s.acknowledged), 0);
  if (fresh > 0) {
    if (reliability_.selective) forget_arrivals(id, ack.psn);
    s.acknowledged = ack.psn;
    // An ACK that overtook a go-back: what it covers need not be sent again.
    if (static_cast<std::int32_t>(ack.psn - s.next_psn) > 0) go_back(id);
  }
  if (nack && reliability_.selective) {
    note_arrival(id, ack.message);
  } else if (nack && ack.psn == s.acknowledged) {
    go_back(id);
  }
  if (needs_.acks && (fresh > 0 || nack)) {
    tell_congestion_control(id, static_cast<std::uint32_t>(fresh), ack, packet);
  }
  if (parameters_.ecn_echo == EcnEcho::ack && marks_of(ack) != 0) {
    control(id, [&](CongestionContext& c) { congestion_control_->on_cnp(c); });
  }
  if (fresh > 0) finish_messages(id);
}

void TransportPart::tell_congestion_control(std::uint32_t id, std::uint32_t fresh, const Packet& ack,
                                            std::uint32_t packet) {
  Feedback feedback;
  feedback.acknowledged_psn = ack.psn;
  feedback.packets = fresh;
  feedback.bytes = static_cast<Bytes>(fresh) * senders_[id].mtu;
  feedback.marked = marks_of(ack);
  if (stamps_) {
    const Telemetry& t = fabric_.packets().telemetry(packet);
    feedback.rtt = loop_.now() - t.sent;
    feedback.hops = {t.hop.data(), t.hops};
  }
  control(id, [&](CongestionContext& c) { congestion_control_->on_ack(c, feedback); });
}

void TransportPart::finish_messages(std::uint32_t id) {
  for (;;) {
    Sender& s = senders_[id];  // the listener may send on a new queue pair
    if (s.oldest == kNone || static_cast<std::int32_t>(s.acknowledged - s.oldest_end) < 0) return;
    const std::uint32_t done = s.oldest;
    const SendRequest request = messages_[done].request;
    state_.names[id].ended += request.bytes;
    set_oldest(s, messages_[done].next);
    messages_.release(done);
    if (state_.observed) set_.write(state_.acknowledged_reader, FlowAcknowledged{id, loop_.now()});
    state_.listener->message_sent(request);
  }
}

// All packets of a message but the last are full.
Bytes TransportPart::acknowledged_payload(std::uint32_t id) const {
  const Sender& s = senders_[id];
  const Bytes ended = state_.names[id].ended;
  if (s.oldest == kNone || s.scale_up) return ended;  // within a host nothing is acknowledged
  return ended + static_cast<Bytes>(s.acknowledged - messages_[s.oldest].first_psn) * s.mtu;
}

// Go-back-N: the next packet is the first one not acknowledged. It asks, so that its loss is found out.
void TransportPart::go_back(std::uint32_t id) {
  Sender& s = senders_[id];
  s.next_psn = s.acknowledged;
  s.unrequested = static_cast<std::uint16_t>(acknowledge_every_ - 1);
  std::uint32_t message = s.oldest;
  while (message != kNone && static_cast<std::int32_t>(s.next_psn - extent(message).end) >= 0)
    message = messages_[message].next;
  set_current(s, message);
}

// ---- Timeouts

void TransportPart::arm_timer(std::uint32_t id) {
  Sender& s = senders_[id];
  s.timer = true;
  s.timer_snapshot = s.acknowledged;
  const std::uint32_t sent = s.next_psn - s.acknowledged;
  s.unasked = sent != 0 && sent <= s.unrequested;
  if (reliability_.selective) {
    selective_[id].timer_end = s.next_psn;
    if (s.timeouts == 0) selective_[id].quiet_since = loop_.now();
  }
  Time wait = reliability_.timeout;
  if (reliability_.low_timeout != 0 && in_flight(id) <= reliability_.low_packets)
    wait = reliability_.low_timeout;
  wait = backed_off(wait, parameters_.retransmission_backoff, s.timeouts);
  schedule_timer(id, loop_.now() + wait, EventKind::retransmission);
}

// Counts a timeout. Shorter ones do not make a queue pair give up sooner: IRN's are only just longer than a
// round trip.
bool TransportPart::one_timeout_too_many(std::uint32_t id) {
  if (++senders_[id].timeouts <= reliability_.retries) return false;
  return !reliability_.selective || loop_.now() - selective_[id].quiet_since >= reliability_.patience;
}

// Looks whether there was progress since it was set; so a queue pair costs one timer event a timeout, not one
// a packet. While nothing in flight asks for an acknowledgement none is missed, as with InfiniBand's
// transport timer (Architecture Specification, volume 1, section 9.7.6.1.3), however slowly packets leave.
void TransportPart::on_retransmission(const Event& event) {
  const std::uint32_t id = event.target;
  Sender& s = senders_[id];
  s.digest = FabricPart::digest(s.digest, event);
  timer_ended(event.target);
  s.timer = false;
  if (s.acknowledged == s.sent_end) return;
  if (s.acknowledged != s.timer_snapshot) {
    s.timeouts = 0;
  } else if (s.unasked) {
    // No answer was due.
  } else if (one_timeout_too_many(id)) {
    s.failed = true;  // as a real queue pair's error state: the stall report names it
    s.current = kNone;
    return;
  } else if (reliability_.selective) {
    repeat_overdue(id);
  } else {
    go_back(id);
  }
  make_ready(id);
  arm_timer(id);
}

}  // namespace netsim
