// The part of Sender for queue pairs into pools of slots (slot_window.h).
#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/transport/sender/sender.h"

namespace netsim {

void Sender::use_pool(std::uint32_t id, const AggregationPool& pool, std::uint32_t key) {
  NETSIM_CHECK(pool.message == 0 || !pool.leaves_unfinished(),
               "a pool whose members take sums in order, and whose switches send on unfinished ones");
  state_.records[id].slots = static_cast<std::uint32_t>(windows_.size());
  windows_.emplace_back(pool, key);
}

// Makes the next ready packet the gap that has_gap() finds. So other queue pairs need no test for pools. It
// is called after each change of the ready packets.
void Sender::offer_slot(std::uint32_t id) {
  const SlotWindow& slots = window(id);
  SelectiveSender& offered = repeated_[id];
  if (slots.has_ready()) {
    offered.repeat_until(slots.next(), slots.next() + 1);
  } else {
    offered.repeat_end = offered.repeat_next;
  }
}

void Sender::make_slot_packet(std::uint32_t id, Packet& packet) {
  packet.message = window(id).value(packet.psn);
  packet.repaired = window(id).repairs();
}

// Gives the packets of all messages their numbers, because the number of a packet determines its slot.
void Sender::fill_slots(std::uint32_t id) {
  SenderState& s = senders_[id];
  while (s.current != kNone) {
    s.next_psn = s.sent_end = s.current_end;
    end_segment(id, true);
  }
  window(id).extend(s.sent_end);
  offer_slot(id);
}

std::uint32_t Sender::take_slot(std::uint32_t id) {
  SlotWindow& slots = window(id);
  const std::uint32_t psn = slots.next();
  if (slots.take(loop_.now())) ++counts_.retransmissions;
  offer_slot(id);
  await_slot_timeout(id);
  return psn;
}

// Schedules an event for the first timeout, unless one is pending, which then comes no later.
void Sender::await_slot_timeout(std::uint32_t id) {
  SenderState& s = senders_[id];
  const Time due = window(id).due();
  if (s.timer || due == kNever) return;
  s.timer = true;
  state_.records[id].timer_event = due;
  schedule_timer(id, due, EventKind::retransmission);
}

void Sender::on_slot_timeout(std::uint32_t id) {
  if (!senders_[id].timer || loop_.now() != state_.records[id].timer_event) return;  // the timer was stopped
  senders_[id].timer = false;
  counts_.timeouts += window(id).time_out(loop_.now());
  offer_slot(id);
  await_slot_timeout(id);
  make_ready(id);
}

void Sender::fold_digest(std::uint32_t id) {
  std::uint64_t &sent = senders_[id].digest, &received = state_.receivers[id].digest;
  late_digest_ +=
      hash_combine(state_.receivers[id].key, sent) + hash_combine(~state_.receivers[id].key, received);
  sent = received = 0;
}

// Handles the sum of a packet. Returns false if it had arrived before.
bool Sender::take_slot_sum(std::uint32_t id, std::uint32_t psn) {
  SenderState& s = senders_[id];
  SlotWindow& slots = window(id);
  if (!slots.take_sum(psn)) return false;
  while (s.acknowledged != s.sent_end && slots.has_sum(s.acknowledged)) ++s.acknowledged;
  // With nothing in flight another communication may use the queue pair next, as if it were new.
  if (s.acknowledged == s.sent_end) s.timer = false;
  offer_slot(id);
  return true;
}

}  // namespace netsim
