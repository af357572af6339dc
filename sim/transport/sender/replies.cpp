// The part of Sender that handles replies: congestion control, acknowledgements and the ends of messages.
#include <algorithm>
#include <utility>

#include "sim/transport/sender/sender.h"

namespace netsim {

// ---- Congestion control

CongestionContext Sender::congestion_context(std::uint32_t id) {
  const SenderState& s = senders_[id];
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

void Sender::begin(std::uint32_t id, Time round_trip) {
  start_congestion_control(id);
  check_path(id, round_trip);
}

void Sender::begin_anew(std::uint32_t id) {
  std::fill_n(state_.congestion_state(id), of(senders_[id]).needs.state_bytes, std::byte{0});
  senders_[id].rate = senders_[id].line_rate;
  start_congestion_control(id);
}

void Sender::start_congestion_control(std::uint32_t id) {
  set_window(id, kNoWindow);
  CongestionContext context = congestion_context(id);
  SenderState& s = senders_[id];
  of(s).congestion_control->start(context);
  s.rate = std::clamp<BitRate>(context.rate, 1, s.line_rate);
  set_window(id, context.window);
}

// Asks congestion control whether it can work with the queue pair's path, unless it has objected to a worse
// one.
void Sender::check_path(std::uint32_t id, Time round_trip) {
  const SenderState& s = senders_[id];
  PathObjection& worst = objections_[s.transport];
  const QueuePairIdentity& n = state_.records[id].identity;
  PathObjection found{round_trip, n.source, n.destination, {}};
  if (!found.before(worst)) return;
  const FabricTransport& transport = of(s);
  const Time held = transport.echo_in_acks ? 0 : transport.parameters.cnp_delay;
  found.text = transport.congestion_control->objection(congestion_context(id), round_trip + held);
  if (!found.text.empty()) worst = std::move(found);
}

template <class Call>
void Sender::control(std::uint32_t id, Call call) {
  SenderState& s = senders_[id];
  const FabricTransport& transport = of(s);
  CongestionContext context = congestion_context(id);
  call(*transport.congestion_control, context);
  const BitRate before = s.rate;
  s.rate = std::clamp<BitRate>(context.rate, 1, s.line_rate);
  if (s.rate != before || context.window != s.congestion_window) {
    set_window(id, context.window);
    if (transport.needs.pace_again) move_pace(id, before);
  }
  for (unsigned i = 0; i < kCongestionTimers; ++i) {
    if (context.timer[i] == kNever) continue;
    schedule_timer(id, context.timer[i], EventKind::congestion_timer, i);
  }
}

// Sets the window in packets to the least of congestion control's window, the transport's, and selective
// repeat's cap. It is rounded up: a packet may start while less than the window is unacknowledged, as in
// HPCC's senders (alibaba-edu/High-Precision-Congestion-Control, IsWinBound).
//
// A window of whole packets is rounded down.
void Sender::set_window(std::uint32_t id, Bytes window) {
  SenderState& s = senders_[id];
  const FabricTransport& transport = of(s);
  const Bytes limit = transport.parameters.window;
  s.congestion_window = window;
  Bytes least = transport.needs.whole_packets ? window / s.mtu * s.mtu : window;
  if (limit != 0) {
    const Bytes own = transport.parameters.window_scales
                          ? static_cast<Bytes>(static_cast<Int128>(limit) * s.rate / s.line_rate)
                          : limit;
    least = std::min(least, own);
  }
  if (transport.reliability.bdp_cap > 0) {
    const double packets = static_cast<double>(s.line_rate) *
                           static_cast<double>(state_.path_constants(id).base_rtt) /
                           (8.0 * static_cast<double>(kSecond)) /
                           static_cast<double>(s.mtu + transport.framing.header + s.overhead);
    const double cap = transport.reliability.bdp_cap * packets * static_cast<double>(s.mtu);
    if (cap < static_cast<double>(least)) least = static_cast<Bytes>(cap);
  }
  const Bytes packets = least / s.mtu + (least % s.mtu != 0 ? 1 : 0);
  s.window = static_cast<std::uint32_t>(std::clamp<Bytes>(packets, 1, UINT32_MAX));
}

void Sender::on_congestion_timer(const Event& event) {
  SenderState& s = senders_[event.target];
  s.digest = FabricShard::digest(s.digest, event);
  timer_ended(event.target);
  const auto timer = static_cast<unsigned>(event.argument);
  control(event.target, [&](const CongestionControl& by, CongestionContext& c) { by.on_timer(c, timer); });
  make_ready(event.target);
}

void Sender::tell_sent(std::uint32_t id, Bytes wire_bytes) {
  control(id, [&](const CongestionControl& by, CongestionContext& c) { by.on_sent(c, wire_bytes); });
}

// ---- Acknowledgements

void Sender::on_control(const Event& event) {
  const std::uint32_t id = event.target;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  SenderState& s = senders_[id];
  s.digest = FabricShard::digest(s.digest, event);
  if (s.counted) ++outstanding_[id].heard;
  const Packet k = fabric_.packets()[packet];
  if (k.kind == PacketKind::cnp) {
    control(id, [](const CongestionControl& by, CongestionContext& c) { by.on_cnp(c); });
  } else {
    on_ack(id, k, packet);
  }
  fabric_.packets().release(packet);
  make_ready(id);
}

void Sender::on_ack(std::uint32_t id, const Packet& ack, std::uint32_t packet) {
  SenderState& s = senders_[id];
  const FabricTransport& transport = of(s);
  const bool nack = ack.kind == PacketKind::nack;
  const auto fresh = std::max(static_cast<std::int32_t>(ack.psn - s.acknowledged), 0);
  if (fresh > 0) {
    if (s.selective) repeated_[id].forget_arrivals(s.acknowledged, ack.psn);
    s.acknowledged = ack.psn;
    s.timer_began = loop_.now();
    // The ACK overtook a go-back. The packets that it covers need not be sent again.
    if (static_cast<std::int32_t>(ack.psn - s.next_psn) > 0) go_back(s);
  }
  if (s.selective) {
    if (transport.reliability.own) {
      tell_reliability(id, ack, static_cast<std::uint32_t>(fresh));
    } else if (nack) {
      repeated_[id].note_arrival(s.acknowledged, ack.message, transport.reliability.reorder_tolerance);
    }
  } else if (nack && ack.psn == s.acknowledged) {
    go_back(s);
  }
  if (s.selective || s.timed_out) [[unlikely]]
    restart_timer(id, fresh > 0);
  if (transport.needs.acks && (fresh > 0 || nack)) {
    tell_congestion_control(id, static_cast<std::uint32_t>(fresh), ack, packet);
  }
  if (transport.parameters.ecn_echo == EcnEcho::ack && marks_of(ack) != 0) {
    control(id, [](const CongestionControl& by, CongestionContext& c) { by.on_cnp(c); });
  }
  if (fresh > 0) finish_messages(id);
}

SenderContext Sender::reliability_context(std::uint32_t id) {
  const SenderState& s = senders_[id];
  return {.now = loop_.now(),
          .base_rtt = state_.path_constants(id).base_rtt,
          .acknowledged = s.acknowledged,
          .next_psn = s.next_psn,
          .packets = repeated_[id],
          .state = state_.sender_reliability(id)};
}

// Hands an ACK or NACK to a reliability with ReliabilityPlan::own.
void Sender::tell_reliability(std::uint32_t id, const Packet& ack, std::uint32_t fresh) {
  const bool nack = ack.kind == PacketKind::nack;
  SenderContext context = reliability_context(id);
  context.newly_acknowledged = fresh;
  of(senders_[id])
      .reliability_rules->on_reply(
          context, {nack ? Reply::Kind::nack : Reply::Kind::ack, nack ? ack.message : 0, ack.psn});
}

void Sender::tell_congestion_control(std::uint32_t id, std::uint32_t fresh, const Packet& ack,
                                     std::uint32_t packet) {
  const SenderState& s = senders_[id];
  Feedback feedback;
  feedback.acknowledged_psn = ack.psn;
  feedback.packets = fresh;
  feedback.bytes = static_cast<Bytes>(fresh) * s.mtu;
  feedback.marked = marks_of(ack);
  if (of(s).stamps) {
    const Telemetry& t = fabric_.packets().telemetry(packet);
    feedback.rtt = loop_.now() - t.sent;
    feedback.hops = {t.hop.data(), t.hops};
  }
  control(id, [&](const CongestionControl& by, CongestionContext& c) { by.on_ack(c, feedback); });
}

void Sender::finish_messages(std::uint32_t id) {
  for (;;) {
    SenderState& s = senders_[id];  // read in every round: the listener may send on a new queue pair
    if (!SendQueues::oldest_acknowledged(s)) return;
    const Segment done = queues_.take_oldest(s);
    state_.records[id].acknowledged += queues_.payload(done, s.mtu);
    if (!queues_.ends_message(done)) continue;
    const SendRequest request = queues_.message(done.message).request;
    const Bytes bytes = queues_.message(done.message).bytes;
    queues_.forget(done.message);
    if (state_.observed && !request.message.credit)
      set_.write(state_.acknowledged_reader, FlowAcknowledged{id, loop_.now()});
    state_.listener->message_sent({request, bytes});
  }
}

// Returns the acknowledged payload. All packets of a message but the last are full.
Bytes Sender::acknowledged_payload(std::uint32_t id) const {
  const SenderState& s = senders_[id];
  const Bytes whole = state_.records[id].acknowledged;
  if (s.oldest == kNone || s.scale_up) return whole;  // within a host nothing is acknowledged
  return whole + static_cast<Bytes>(s.acknowledged - queues_.segment(s.oldest).first) * s.mtu;
}

// Ends the oldest message. Packets over scale-up links arrive in order, so all its packets have arrived.
void Sender::delivered_over_scale_up(std::uint32_t id, std::uint32_t packet) {
  const Ended ended = end_oldest(id);
  DelayTeller* told = nullptr;
  if (state_.traced)
    told = delays_.of(id, ended.bytes, loop_.now() - ended.start, fabric_.packets().trace_of(packet));
  state_.listener->message_delivered({ended.request.message, ended.bytes, told});
  state_.listener->message_sent({ended.request, ended.bytes});
}

bool Sender::sum_arrived(std::uint32_t id, std::uint32_t psn, std::uint32_t packets, bool marked) {
  SenderState& s = senders_[id];
  if (!s.selective) {
    s.acknowledged += packets;
  } else if (!take_slot_sum(id, psn, marked)) {
    return false;
  }
  fresh_sums_ += packets;
  const bool complete = is_oldest_complete(id);
  make_ready(id);
  return complete;
}

bool Sender::is_oldest_complete(std::uint32_t id) {
  SenderState& s = senders_[id];
  while (SendQueues::oldest_acknowledged(s)) {
    if (queues_.ends_message(queues_.segment(s.oldest))) return true;
    const Segment done = queues_.take_oldest(s);
    counts_.packets += done.end - done.first;
  }
  return false;
}

Sender::Ended Sender::end_oldest(std::uint32_t id) {
  SenderState& s = senders_[id];
  Segment done = queues_.take_oldest(s);
  counts_.packets += done.end - done.first;
  while (!queues_.ends_message(done)) {
    done = queues_.take_oldest(s);
    counts_.packets += done.end - done.first;
  }
  const QueuedMessage& m = queues_.message(done.message);
  const Ended ended{m.request, m.bytes, m.start, m.number};
  queues_.forget(done.message);
  return ended;
}

// Go-back-N: the next packet is the first unacknowledged one. It requests an ACK, so that its loss is
// detected.
void Sender::go_back(SenderState& s) {
  queues_.go_back(s);
  s.unrequested = static_cast<std::uint16_t>((1U << s.ask_shift) - 1);
}

}  // namespace netsim
