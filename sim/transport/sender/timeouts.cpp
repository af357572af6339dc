// The part of Sender that handles timeouts and what is sent again after them.
#include <algorithm>

#include "sim/core/random.h"
#include "sim/transport/sender/sender.h"

namespace netsim {

// ---- Timeouts. Timers are in the TimerQueue, or are events of their own (argument 0) if they end before
// others.

bool Sender::stand_in_line(std::uint32_t id, Time time) {
  if (!line_.takes(time)) return false;
  const SenderState& s = senders_[id];
  const std::uint64_t key = fabric_.origin(injectors_[s.injector].port).next_key();
  const std::uint32_t place = line_.add(
      time, key, id, [this](const TimerQueue::Timer& timer, std::uint32_t at) { make_event(timer, at); });
  if (s.counted) outstanding_[id].line = place;
  return true;
}

void Sender::make_event(const TimerQueue::Timer& timer, std::uint32_t place) {
  loop_.insert({static_cast<Time>(timer.time), timer.key, 0, EventKind::retransmission, place + 1ULL});
}

void Sender::on_retransmission_timer(const Event& event) {
  if (event.argument == 0) return on_retransmission(event);
  const TimerQueue::Timer timer =
      line_.end(static_cast<std::uint32_t>(event.argument - 1),
                [this](const TimerQueue::Timer& next, std::uint32_t at) { make_event(next, at); });
  if (timer.over != 0) {
    late_digest_ += timer.value;
    return;
  }
  Event own = event;
  own.target = static_cast<std::uint32_t>(timer.value);
  if (senders_[own.target].counted && outstanding_[own.target].line + 1ULL == event.argument)
    outstanding_[own.target].line = kNone;
  on_retransmission(own);
}

// The timer is InfiniBand's (Architecture Specification 1.4, volume 1, section 9.7.6.1.3). It starts with the
// first packet in flight that requests an acknowledgement. An acknowledgement of something new and a timeout
// restart it, as in Linux's rxe (rxe_req.c update_state, rxe_comp.c COMPST_EXIT).
//
// The specification lets a channel adapter notice a timeout of T_tr between T_tr and 4 T_tr; here it is T_tr.
//
// A pending event comes no later than the timeout, mostly earlier. So restarting the timer only stores the
// time, and a queue pair needs one event per timeout rather than one per packet.

// Returns how long the queue pair waits for an answer while nothing changes.
Time Sender::timeout(std::uint32_t id) const {
  const SenderState& s = senders_[id];
  const FabricTransport& transport = of(s);
  const ReliabilityPlan& reliability = transport.reliability;
  Time wait = reliability.timeout;
  if (reliability.low_timeout != 0 && in_flight(id) <= reliability.low_packets)
    wait = reliability.low_timeout;
  if (!s.timed_out) return wait;
  return backed_off(wait, transport.parameters.retransmission_backoff, state_.records[id].timeouts);
}

// Called when a packet that requests an acknowledgement is made and none in flight has requested one.
void Sender::begin_timer(std::uint32_t id) {
  SenderState& s = senders_[id];
  s.timer_began = loop_.now();
  if (s.selective) repeated_[id].timer_end = s.next_psn;
  if (!s.timer || s.selective || s.timed_out) await_timeout(id);
}

// Called for an answer with selective repeat, or after a timeout. `fresh` means that it acknowledges
// something new.
void Sender::restart_timer(std::uint32_t id, bool fresh) {
  SenderState& s = senders_[id];
  const bool sooner = s.timed_out || in_flight(id) <= of(s).reliability.low_packets;
  if (fresh && s.selective) repeated_[id].timer_end = s.next_psn;
  if (fresh && s.timed_out) {
    QueuePairRecord& record = state_.records[id];
    record.timeouts = 0;
    s.timed_out = false;
    if (record.timer_event > loop_.now() + timeout(id)) s.timer = false;  // the pending event was backed off
  }
  if (sooner && answer_due(s) && !s.failed) await_timeout(id);
}

// Schedules an event unless a pending one comes early enough. The timeout becomes shorter when less is in
// flight, and when a backed-off one is over.
void Sender::await_timeout(std::uint32_t id) {
  SenderState& s = senders_[id];
  const Time at = s.timer_began + timeout(id);
  QueuePairRecord& record = state_.records[id];
  if (s.timer && record.timer_event <= at) return;
  s.timer = true;
  record.timer_event = std::max(at, loop_.now());
  schedule_timer(id, record.timer_event, EventKind::retransmission);
}

// Takes the packets sent before the timer started for lost, after a timeout. If the last packet had a round
// trip's time to be acknowledged, all unacknowledged packets are lost.
void Sender::repeat_overdue(std::uint32_t id) {
  const SenderState& s = senders_[id];
  SelectiveSender& v = repeated_[id];
  if (of(s).reliability.own) {
    SenderContext context = reliability_context(id);
    return of(s).reliability_rules->on_timeout(context);
  }
  const bool all = loop_.now() - v.last_sent > state_.path_constants(id).base_rtt;
  v.repeat_until(s.acknowledged, all ? s.next_psn : v.timer_end);
}

// Counts a timeout and returns whether the queue pair fails. Shorter timeouts do not make it fail sooner,
// because IRN's are only just longer than a round trip.
bool Sender::one_timeout_too_many(std::uint32_t id) {
  SenderState& s = senders_[id];
  const ReliabilityPlan& reliability = of(s).reliability;
  QueuePairRecord& record = state_.records[id];
  if (!s.timed_out && s.selective) repeated_[id].quiet_since = s.timer_began;
  s.timed_out = true;
  record.waited += loop_.now() - s.timer_began;
  counts_.longest_timeouts = std::max(counts_.longest_timeouts, record.waited);
  if (++record.timeouts <= reliability.retries) return false;
  return !s.selective || loop_.now() - repeated_[id].quiet_since >= reliability.patience;
}

// Handles a retransmission event. While no packet in flight requests an acknowledgement none is missed,
// however slowly packets leave.
void Sender::on_retransmission(const Event& event) {
  const std::uint32_t id = event.target;
  SenderState& s = senders_[id];
  s.digest = FabricShard::digest(s.digest, event);
  timer_ended(event.target);
  if (s.aggregation) [[unlikely]] {
    fold_digest(id);
    return on_slot_timeout(id);
  }
  if (!s.timer || event.time != state_.records[id].timer_event) return;
  s.timer = false;
  // begin_timer() is called when an answer is due again. After a timeout the timer goes on, though the
  // packets to repeat may be held up at the port.
  if (!answer_due(s) && (!s.timed_out || s.acknowledged == s.sent_end)) return;
  if (event.time < s.timer_began + timeout(id)) return await_timeout(id);
  if (one_timeout_too_many(id)) {
    s.failed = true;  // as a real queue pair's error state; waiting() reports it
    s.current = kNone;
    return;
  }
  ++counts_.timeouts;
  s.timer_began = loop_.now();
  if (s.selective) {
    repeat_overdue(id);
    repeated_[id].timer_end = s.next_psn;
  } else {
    go_back(s);
  }
  await_timeout(id);
  make_ready(id);
}

// Stores in a pending timer the value by which its end would have changed the digest.
void Sender::end(std::uint32_t id) {
  const std::uint32_t place = outstanding_[id].line;
  if (place == kNone) return;
  TimerQueue::Timer& timer = line_[place];
  const Event end{static_cast<Time>(timer.time), timer.key, id, EventKind::retransmission, 0};
  const std::uint64_t key = state_.receivers[id].key, before = senders_[id].digest;
  timer.value = hash_combine(key, FabricShard::digest(before, end)) - hash_combine(key, before);
  timer.over = 1;
}

}  // namespace netsim
