// The part of Sender for queue pairs into pools of slots (slot_window.h).
#include <memory>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/transport/sender/sender.h"

namespace netsim {

void Sender::use_pool(std::uint32_t id, const AggregationPool& pool, std::uint32_t key,
                      std::uint64_t worker) {
  NETSIM_CHECK(pool.message == 0 || !pool.leaves_unfinished(),
               "a pool whose members take sums in order, and whose switches send on unfinished ones");
  state_.records[id].slots = static_cast<std::uint32_t>(windows_.size());
  if (pool.best_effort.window != 0) {
    windows_.push_back(std::make_unique<BestEffortWindow>(pool, key, worker));
  } else {
    windows_.push_back(std::make_unique<SlotWindow>(pool, key));
  }
}

void Sender::serve_pool(std::uint32_t id, const AggregationPool& pool, std::uint32_t key,
                        std::uint64_t workers) {
  state_.records[id].slots = static_cast<std::uint32_t>(windows_.size());
  windows_.push_back(std::make_unique<ServerWindow>(pool, key, workers));
}

void Sender::acknowledge_results(std::uint32_t id, std::uint32_t end) {
  senders_[id].acknowledged = end;
  server_window(id).forget_before(end);
  offer_slot(id);
}

ServerWindow::Arrival Sender::add_contribution(std::uint32_t id, std::uint32_t psn,
                                               const Contribution& packet) {
  // All workers have the result of a packet before those in flight.
  if (earlier(psn, senders_[id].acknowledged)) return ServerWindow::Arrival::dropped;
  const ServerWindow::Arrival arrival = server_window(id).add(psn, packet);
  if (arrival == ServerWindow::Arrival::added || arrival == ServerWindow::Arrival::completes) ++fresh_sums_;
  if (arrival == ServerWindow::Arrival::completes || arrival == ServerWindow::Arrival::repeats) {
    offer_slot(id);
    make_ready(id);
  }
  return arrival;
}

// Makes the next ready packet the gap that has_gap() finds. So other queue pairs need no test for pools. It
// is called after each change of the ready packets.
void Sender::offer_slot(std::uint32_t id) {
  const PoolWindow& slots = window(id);
  SelectiveSender& offered = repeated_[id];
  if (slots.has_ready()) {
    offered.repeat_until(slots.next(), slots.next() + 1);
  } else {
    offered.repeat_end = offered.repeat_next;
  }
}

void Sender::make_slot_packet(std::uint32_t id, std::uint32_t index) {
  Packet& packet = fabric_.packets()[index];
  const PoolWindow& slots = window(id);
  packet.repaired = slots.repairs();
  packet.message = slots.value(packet.psn);
  packet.again = slots.is_again(packet.psn);
  packet.collided = false;
  packet.marked = slots.is_marked(packet.psn);
  if (const std::uint64_t worker = slots.worker(); worker != 0) fabric_.packets().workers(index) = worker;
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
  PoolWindow& slots = window(id);
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

std::uint64_t Sender::fruitless_rounds(std::uint32_t id) const {
  const bool has_window = uses_pool(senders_[id]) && senders_[id].injector != kNone;
  return has_window ? windows_[state_.records[id].slots]->fruitless_rounds() : 0;
}

void Sender::fold_digest(std::uint32_t id) {
  std::uint64_t &sent = senders_[id].digest, &received = state_.receivers[id].digest;
  late_digest_ +=
      hash_combine(state_.receivers[id].key, sent) + hash_combine(~state_.receivers[id].key, received);
  sent = received = 0;
}

// Handles the sum of a packet. Returns false if it had arrived before.
bool Sender::take_slot_sum(std::uint32_t id, std::uint32_t psn, bool marked) {
  SenderState& s = senders_[id];
  PoolWindow& slots = window(id);
  if (!slots.take_sum(psn, marked)) return false;
  while (s.acknowledged != s.sent_end && slots.has_sum(s.acknowledged)) ++s.acknowledged;
  // With nothing in flight another communication may use the queue pair next, as if it were new.
  if (s.acknowledged == s.sent_end) s.timer = false;
  offer_slot(id);
  return true;
}

}  // namespace netsim
