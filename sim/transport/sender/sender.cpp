#include "sim/transport/sender/sender.h"

#include <algorithm>
#include <utility>

namespace netsim {

Sender::Sender(LogicalProcess& set, FabricShard& fabric, TransportState& state, Receiver& receiver,
               DelayDivision& delays, NetworkCounters& counts)
    : set_(set),
      loop_(set.loop()),
      fabric_(fabric),
      state_(state),
      receiver_(receiver),
      delays_(delays),
      counts_(counts),
      transports_(state.transports.data()),
      senders_(state.senders.data()),
      outstanding_(state.outstanding.data()),
      repeated_(state.selective_senders.data()),
      limits_(state.pace_limits.data()),
      injectors_(fabric, state),
      queues_(state.pace_limits),
      objections_(state.transports.size()) {}

// Tells the receiver which message ends with the packet that is made now, so that packets need not carry it.
void Sender::announce(std::uint32_t id, const QueuedMessage& m) {
  const Incoming incoming{m.request.message, m.bytes, m.start, m.number, kNone};
  const std::uint32_t to = state_.set_of_gpu[m.request.message.destination];
  if (to == set_.id()) {
    receiver_.expect(id, incoming);
  } else {
    set_.post(to, kNoEvent).event = {kNoEvent, 0, id, EventKind::notice, set_.attach(to, incoming)};
  }
}

// ---- Messages

MessageHandle Sender::send(std::uint32_t id, const SendRequest& request, std::uint32_t way) {
  SenderState& s = senders_[id];
  const std::uint32_t message = queues_.add(s, id, request, loop_.now(), way);
  const MessageHandle handle{request.message.source, message, queues_.message(message).generation};
  if (state_.traced) queues_.set_held_before(message, wire_held(s));
  if (s.limited) [[unlikely]]
    await_rests(id);
  if (!s.scale_up || s.window != UINT32_MAX) {  // over the fabric, acknowledged or in an all-reduce tree
    if (!request.message.credit) ++counts_.flows_started;
    counts_.bytes_sent += request.message.bytes;
    if (s.selective && s.aggregation) [[unlikely]]
      fill_slots(id);
  }
  make_ready(id);
  return handle;
}

// ---- Arbitration: a queue pair is in its injector's ring while it may send.

// Returns the packets in flight: those not acknowledged. Packets known to have arrived out of order do not
// count, unless the plan counts cumulatively.
std::uint32_t Sender::in_flight(std::uint32_t id) const {
  const SenderState& s = senders_[id];
  const std::uint32_t sent = s.next_psn - s.acknowledged;
  return s.selective && !of(s).reliability.cumulative ? sent - repeated_[id].arrived_count : sent;
}

// Returns whether less than the window is in flight.
[[gnu::always_inline]] inline bool Sender::window_open(std::uint32_t id, const SenderState& s) const {
  return (s.selective ? in_flight(id) : s.next_psn - s.acknowledged) < s.window;
}

// Returns whether the queue pair may send. If a window shrank below what is in flight and no packet in flight
// requests an ACK, one packet with a request may be sent. So a queue pair that may not send has always
// requested the ACK that lets it go on.
bool Sender::has_work(std::uint32_t id) const {
  const SenderState& s = senders_[id];
  if (s.failed) return false;
  if (has_gap(id, s)) return true;
  return s.current != kNone && (window_open(id, s) || s.next_psn - s.acknowledged <= s.unrequested);
}

// Puts the queue pair into its ring if it may send and is not there already or waiting for its pace.
void Sender::make_ready(std::uint32_t id) {
  SenderState& s = senders_[id];
  if (s.ready) return update_level(id);
  if (s.pacing || !has_work(id)) return;
  if (s.limited && s.pace_at > loop_.now()) [[unlikely]] {
    s.pacing = true;
    return schedule_timer(id, s.pace_at, EventKind::pace);
  }
  join(id);
  injectors_.wake(injectors_[s.injector]);
}

// Returns the queue pair's level of priority at its NIC, that of the message whose packet is next. Within a
// host there are no levels.
std::uint32_t Sender::level_of(std::uint32_t id) const {
  const SenderState& s = senders_[id];
  if (s.scale_up && s.window == UINT32_MAX) return 0;
  const std::uint32_t next = has_gap(id, s) ? queues_.segment_of(s, repeated_[id].repeat_next) : s.current;
  if (next == kNone) return 0;
  const std::uint32_t levels = static_cast<std::uint32_t>(of(s).parameters.nic_priorities);
  return std::min<std::uint32_t>(queues_.message(queues_.segment(next).message).priority, levels - 1);
}

[[gnu::always_inline]] inline Sender::Made Sender::make_one(Injectors::Injector& in) {
  while (in.ready != 0 && injectors_.open(in)) {
    const std::uint32_t traffic_class = injectors_.next_class(
        in, [this](std::uint32_t id) { return has_work(id); },
        [this](std::uint32_t id) { return next_packet_bytes(id); });
    if (traffic_class == kNone) return Made::held;
    const std::uint32_t id = injectors_.take(in, traffic_class);
    if (!has_work(id)) continue;  // its window has shrunk, or its messages are held
    if (const SenderState& s = senders_[id]; s.limited && (s.renews_limits || has_gap(id, s)))
      renew_limits(id);
    const std::uint32_t packet = next_packet(id);
    const Bytes bytes = fabric_.packets()[packet].bytes;
    injectors_.fill(in, bytes);
    fabric_.transmit(in.port, packet);
    pace(id, bytes + senders_[id].overhead);
    if ((in.ready >> traffic_class & 1) == 0) fabric_.class_emptied(in.port, traffic_class);
    return in.ready == 0 || !injectors_.open(in) ? Made::last : Made::more;
  }
  return Made::none;
}

// Lets each injector at the port make a packet in turn.
void Sender::port_free(PortId port) {
  const Injectors::Injector* const first = &injectors_.of_port(port);
  bool held = false;
  do {
    Injectors::Injector& in = injectors_.of_port(port);
    const Made made = make_one(in);
    const bool several = injectors_.turn(in);
    if (made == Made::more || (made == Made::last && several && injectors_.any_waiting(port)))
      return fabric_.wake(port, Injectors::likely_next(injectors_.of_port(port)));
    if (made == Made::last) break;
    held = held || made == Made::held;
  } while (&injectors_.of_port(port) != first);
  if (held) return;                       // the resume or credit wakes the port
  fabric_.set_source_ready(port, false);  // make_ready() or departed() set it again
}

// ---- Packets

// Returns whether the packet before next_psn requests an acknowledgement. The last packet of a message does,
// and one after which the window is full. Others do when too many packets made no request (the NIC's
// setting).
//
// Packets are counted since the last request, as in Linux's rxe. The vendor's register only promises one in
// 2^n packets.
[[gnu::always_inline]] inline bool Sender::asks(std::uint32_t id, SenderState& s, bool last) {
  if (s.unrequested + 1U < 1U << s.ask_shift && !last && window_open(id, s)) {
    ++s.unrequested;
    return false;
  }
  if (s.next_psn - 1 - s.acknowledged <= s.unrequested) begin_timer(id);
  s.unrequested = 0;
  return true;
}

std::uint32_t Sender::take_gap(std::uint32_t id) {
  if (senders_[id].aggregation) [[unlikely]]
    return take_slot(id);
  ++counts_.retransmissions;
  return repeated_[id].take_gap();
}

// Makes the packet of the next gap. Missing packets are sent before new ones.
std::uint32_t Sender::repeat_gap(std::uint32_t id) {
  const std::uint32_t psn = take_gap(id);
  const std::uint32_t index = queues_.segment_of(senders_[id], psn);
  const Segment& segment = queues_.segment(index);
  const std::uint32_t packet =
      make_packet(id, extent(index), psn, psn + 1 == segment.end && queues_.ends_message(segment), true);
  if (senders_[id].limited) fabric_.packets()[packet].path = queues_.path_of(segment.message);
  return packet;
}

// Looks up the rate limit and the path of the message whose packet next_packet() would make. Nearly always
// they are those of the packet before. A missing packet has the path and limit of its own message
// (repeat_gap), so they are looked up for each of them.
void Sender::renew_limits(std::uint32_t id) {
  SenderState& s = senders_[id];
  const bool gap = has_gap(id, s);
  const std::uint32_t segment = gap ? queues_.segment_of(s, repeated_[id].repeat_next) : s.current;
  PaceLimits& limits = limits_[id];
  limits.paced_for = queues_.segment(segment).message;
  limits.paced_at_most = queues_.message(limits.paced_for).rate_limit();
  s.renews_limits = gap;
  if (!gap) s.path = queues_.path_of(limits.paced_for);
}

std::uint32_t Sender::next_packet(std::uint32_t id) {
  SenderState& s = senders_[id];
  if (has_gap(id, s)) return repeat_gap(id);
  const Extent segment{s.current, s.current_first, s.current_end};
  const std::uint32_t psn = s.next_psn++;
  const bool fresh = psn == s.sent_end;
  if (fresh) {
    ++s.sent_end;
  } else {
    ++counts_.retransmissions;
  }
  const bool last = s.next_psn == segment.end && end_segment(id, fresh);
  return make_packet(id, segment, psn, last, !s.scale_up && asks(id, s, last));
}

// Called when the packet being made is the last of the current segment; `fresh` means that it is made for the
// first time. Returns whether it is the last of its message.
bool Sender::end_segment(std::uint32_t id, bool fresh) {
  SenderState& s = senders_[id];
  const Segment& segment = queues_.segment(s.current);
  const bool last = queues_.ends_message(segment);
  // The message ends too: a segment that another message cut short has no new packets.
  if (fresh) {
    if (!s.scale_up) announce(id, queues_.message(segment.message));
    if (last && queues_.message(segment.message).request.tell_left) [[unlikely]] {
      loop_.schedule(loop_.now(), fabric_.origin(injectors_[s.injector].port), EventKind::pace, id,
                     kMessageLeft + segment.message);
    }
    if (s.limited) [[unlikely]]
      limits_[id].ended = segment.message;
    queues_.end_message(s);
  }
  queues_.leave_segment(s);
  return last;
}

Sender::Extent Sender::extent(std::uint32_t segment) const {
  const Segment& g = queues_.segment(segment);
  return {segment, g.first - g.offset, g.end};
}

// Returns the bytes of a packet as buffers count them. All packets of a message but the last are full.
Bytes Sender::packet_bytes(const SenderState& s, const Extent& segment, std::uint32_t psn) const {
  const std::uint32_t number = psn - segment.base;
  Bytes payload = s.mtu;
  if (psn + 1 == segment.end) {
    const QueuedMessage& m = queues_.message(queues_.segment(segment.segment).message);
    payload = std::min(payload, m.bytes - static_cast<Bytes>(number) * s.mtu);
  }
  if (s.scale_up) return payload;
  const Framing& framing = of(s).framing;
  return payload + framing.header + (number == 0 ? framing.first_header : 0);
}

// Returns the bytes of the packet that next_packet() would make.
Bytes Sender::next_packet_bytes(std::uint32_t id) const {
  const SenderState& s = senders_[id];
  const bool gap = has_gap(id, s);
  const std::uint32_t psn = gap ? repeated_[id].repeat_next : s.next_psn;
  return packet_bytes(s, extent(gap ? queues_.segment_of(s, psn) : s.current), psn);
}

std::uint32_t Sender::make_packet(std::uint32_t id, const Extent& segment, std::uint32_t psn, bool last,
                                  bool ask) {
  const SenderState& s = senders_[id];
  const std::uint32_t index = fabric_.packets().allocate();
  Packet& k = fabric_.packets()[index];
  k.psn = psn;
  k.bytes = static_cast<std::uint32_t>(packet_bytes(s, segment, psn));
  k.path = s.path;
  k.kind = PacketKind::data;
  k.set_priority(static_cast<std::uint8_t>(kDataPriority + s.traffic_class));
  k.marked = false;
  k.last = last;
  k.ack_request = ask;
  k.traced = false;
  if (last && state_.traced) [[unlikely]]
    begin_trace(s, segment, index);
  if (state_.tagged) [[unlikely]]
    set_tag(id, segment, index);
  if (s.scale_up) {
    if (s.aggregation) [[unlikely]]
      make_aggregation_packet(id, index);
    return index;
  }
  if (s.counted) ++outstanding_[id].sent;
  if (of(s).stamps) {
    Telemetry& t = fabric_.packets().telemetry(index);
    t.sent = loop_.now();
    t.hops = 0;
  }
  if (s.selective) repeated_[id].last_sent = loop_.now();
  return index;
}

// Gives the packet its tag, for policies of switches.
void Sender::set_tag(std::uint32_t id, const Extent& segment, std::uint32_t packet) {
  const QueuedMessage& m = queues_.message(queues_.segment(segment.segment).message);
  const std::uint32_t number = fabric_.packets()[packet].psn - segment.base;
  PacketTag& tag = fabric_.packets().tag(packet);
  tag = {};
  tag.flow = state_.receivers[id].key;
  tag.message_bytes = m.bytes;
  tag.remaining = m.bytes - static_cast<Bytes>(number) * senders_[id].mtu;
  tag.message_start = m.start;
  tag.path_hint = m.request.message.traits.path_hint;
  tag.priority = m.priority;
}

// With an all-reduce tree the arrival of every sum is reported (`last`), because it opens the window.
// ack_request then marks the last packet of the message.
void Sender::make_aggregation_packet(std::uint32_t id, std::uint32_t index) {
  Packet& packet = fabric_.packets()[index];
  const QueuePairRecord& record = state_.records[id];
  packet.bytes = static_cast<std::uint32_t>(packet.bytes / record.efficiency + 0.5) + record.header;
  packet.ingress_queue = kNoIngressQueue;
  packet.ack_request = packet.last;
  if (senders_[id].window != UINT32_MAX) packet.last = true;
  packet.repaired = false;
  packet.kept_by_links = !senders_[id].selective && senders_[id].window != UINT32_MAX;
  if (senders_[id].selective) make_slot_packet(id, index);
}

// Returns the total time for which the wire has held back the queue pair's class.
Time Sender::wire_held(const SenderState& s) const {
  return fabric_.held_time(injectors_[s.injector].wire, kDataPriority + s.traffic_class);
}

void Sender::begin_trace(const SenderState& s, const Extent& segment, std::uint32_t packet) {
  const QueuedMessage& m = queues_.message(queues_.segment(segment.segment).message);
  fabric_.packets()[packet].traced = true;
  PacketTrace& trace = fabric_.packets().trace(packet);
  trace.begin(loop_.now());
  if (const Time held = wire_held(s) - m.held_before; held > 0)
    trace.waited_before(injectors_[s.injector].wire, held);
}

// Schedules an event for the queue pair itself.
void Sender::schedule_timer(std::uint32_t id, Time time, EventKind kind, std::uint64_t argument) {
  const SenderState& s = senders_[id];
  if (s.counted) ++outstanding_[id].timers;
  if (kind == EventKind::retransmission && stand_in_line(id, time)) return;
  loop_.schedule(time, fabric_.origin(injectors_[s.injector].port), kind, id, argument);
}

// ---- Pacing

// Puts the queue pair back into the ring, at once or when its rate allows the next packet.
void Sender::pace(std::uint32_t id, Bytes wire_bytes) {
  SenderState& s = senders_[id];
  const CongestionNeeds& needs = of(s).needs;
  if (needs.sent_bytes && !s.scale_up) {
    tell_sent(id, wire_bytes);
  }
  if (s.limited) [[unlikely]]
    return pace_limited(id, wire_bytes);
  if (s.scale_up || (s.rate >= s.line_rate && !needs.pace_again)) {
    join_if_work(id);
    return;
  }
  const std::uint32_t paced = paced_bytes(s, wire_bytes);
  wait_for_pace(id, paced, fabric_.serialisation(paced, s.rate));
}

// Paces a queue pair with limits. The connection of a message that has ended rests if the message has a gap.
void Sender::pace_limited(std::uint32_t id, Bytes wire_bytes) {
  const SenderState& s = senders_[id];
  PaceLimits& limits = limits_[id];
  const BitRate rate_limit = limits.paced_at_most;
  const BitRate rate = std::min(s.rate, rate_limit);
  const std::uint32_t ended = std::exchange(limits.ended, kNone);
  if (ended != kNone) {
    limits.paced_for = kNone;
    if (const Time gap = queues_.message(ended).request.message.traits.gap; gap != 0)
      begin_rest(id, ended, fabric_.serialisation(paced_bytes(s, wire_bytes), rate) + gap);
  }
  if (rate >= s.line_rate && (s.scale_up || !of(s).needs.pace_again)) {
    join_if_work(id);
    return;
  }
  const std::uint32_t paced = paced_bytes(s, wire_bytes);
  Time wait = fabric_.serialisation(paced, rate);
  if (rate_limit < s.rate) {
    wait -= catch_up(limits, wait, ended == kNone);
    if (wait <= 0) return join_if_work(id);
  }
  wait_for_pace(id, paced, wait);
}

// Returns how much later the packet was made than its rate limit allowed, because other queue pairs of the
// NIC went first. The next wait is shorter by that, so that the queue pair has its rate. It makes up for a
// few packets at most, and not for the pause between two messages.
Time Sender::catch_up(PaceLimits& limits, Time packet, bool message_goes_on) const {
  constexpr Time kMostPackets = 8;
  const Time now = loop_.now();
  const Time due = limits.due == kNever ? now : std::clamp(limits.due, now - kMostPackets * packet, now);
  limits.due = message_goes_on ? due + packet : kNever;
  return now - due;
}

// Makes the message's connection rest for this time, which is that of its last packet and its gap.
void Sender::begin_rest(std::uint32_t id, std::uint32_t message, Time time) {
  const Time now = loop_.now();
  queues_.begin_rest(senders_[id], message, now, now + time);
  await_rests(id);
}

// Schedules events for the ends of rests. Only rests that messages wait for need one.
void Sender::await_rests(std::uint32_t id) {
  for (;;) {
    const Time until = queues_.next_rest(id);
    if (until == kNever) return;
    schedule_timer(id, until, EventKind::pace, kRestOver);
  }
}

// Returns the bytes for which the wait between packets is computed.
std::uint32_t Sender::paced_bytes(const SenderState& s, Bytes wire_bytes) const {
  return of(s).needs.paces_packets && !s.scale_up ? s.mtu : static_cast<std::uint32_t>(wire_bytes);
}

// Starts the wait for the next packet, which is for so many bytes. If nothing is to be sent, a queue pair of
// constant rate needs no event: see make_ready().
void Sender::wait_for_pace(std::uint32_t id, std::uint32_t paced, Time wait) {
  SenderState& s = senders_[id];
  s.last_paced = paced;
  s.pace_at = loop_.now() + wait;
  if (s.scale_up && !has_work(id)) return;
  s.pacing = true;  // also after the last packet: a following message must not exceed the rate
  schedule_timer(id, s.pace_at, EventKind::pace);
}

// Called when the rate changes during the wait for the next packet. The wait changes as much as the time of
// the last packet does.
void Sender::move_pace(std::uint32_t id, BitRate before) {
  SenderState& s = senders_[id];
  const BitRate at_most = s.limited ? limits_[id].paced_at_most : kNoRateLimit;
  const BitRate was = std::min(before, at_most), is = std::min(s.rate, at_most);
  if (!s.pacing || is == was) return;
  s.pace_at += fabric_.serialisation(s.last_paced, is) - fabric_.serialisation(s.last_paced, was);
  s.pace_at = std::max(s.pace_at, loop_.now());
  schedule_timer(id, s.pace_at, EventKind::pace);
}

void Sender::on_pace(const Event& event) {
  SenderState& s = senders_[event.target];
  s.digest = FabricShard::digest(s.digest, event);
  if (s.aggregation) [[unlikely]]
    fold_digest(event.target);
  if (event.argument >= kMessageLeft) [[unlikely]] {
    const auto message = static_cast<std::uint32_t>(event.argument - kMessageLeft);
    const SendRequest request = queues_.message(message).request;
    return state_.listener->message_left(request);
  }
  timer_ended(event.target);
  if (event.argument == kRestOver) [[unlikely]] {
    queues_.end_rests(s, event.target, loop_.now());
    if (uses_pool(s)) fill_slots(event.target);
    return make_ready(event.target);
  }
  if (!s.pacing || event.time != s.pace_at) return;  // the wait was moved
  s.pacing = false;
  make_ready(event.target);
}

}  // namespace netsim
