#include "sim/collectives/proof/symbolic_execution.h"

#include <algorithm>
#include <utility>

#include "sim/collectives/proof/wording.h"

namespace netsim::proof {

SymbolicExecution::SymbolicExecution(const Plan& plan, std::uint32_t slots, const Blocks& blocks,
                                     const Goal& goal, RankSets& sets, Cells& cells, AccessOrder* order)
    : plan_(plan),
      slots_(slots),
      blocks_(blocks),
      ends_(plan, blocks),
      goal_(goal),
      sets_(sets),
      cells_(cells),
      order_(order),
      connections_(ends_.total()),
      states_(blocks.total()),
      next_(blocks.total() <= kFewBlocks ? blocks.total() : 0),
      values_(1) {}

std::string SymbolicExecution::run() {
  for (std::uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
    for (std::uint32_t block = 0; block < blocks_.of(rank) && error_.empty(); ++block) advance({rank, block});
  }
  while (!ready_.empty() && error_.empty()) {
    const BlockAt next = ready_.front();
    ready_.pop_front();
    advance(next);
  }
  if (error_.empty()) error_ = stuck();
  if (error_.empty()) error_ = unreceived();
  return error_;
}

void SymbolicExecution::advance(BlockAt at) {
  at_ = at;
  id_ = blocks_.id(at.rank, at.block);
  shares_cells_ = order_ != nullptr && blocks_.of(at.rank) > 1;
  State& state = states_[id_];
  const bool waited = std::exchange(state.waited, false);
  const std::uint32_t steps = plan_.steps(at.rank, at.block), before = state.finished;
  const std::uint32_t end = std::min(steps - before, kStepsAtOnce) + before;
  for (index_ = before; index_ < end; state.finished = ++index_) {
    step_ = waited && index_ == before ? next_[id_] : plan_.step(at.rank, at.block, index_);
    if (!can_begin() || !perform()) break;
    if (listener_ != nullptr) listener_->step_done(at_, index_, step_);
  }
  if (index_ == end && end < steps) ready_.push_back(at);
  if (state.first_waiter != kNoIndex && state.finished > state.awaited) wake_waiters(id_);
}

bool SymbolicExecution::can_begin() {
  if (step_.after_block != kNoIndex) {
    State& other = states_[blocks_.id(at_.rank, step_.after_block)];
    if (other.finished <= step_.after_step) {
      if (other.first_waiter == kNoIndex || step_.after_step < other.awaited)
        other.awaited = step_.after_step;
      states_[id_].next_waiter = other.first_waiter;
      other.first_waiter = id_;
      return wait(Waits::for_step);
    }
  }
  if (receives(step_.kind) && without_message(id_, at_, step_.from) != kNoIndex)
    return wait(Waits::for_message);
  if (sends(step_.kind) && without_slot(id_, at_, step_.to) != kNoIndex) return wait(Waits::for_slot);
  return true;
}

// Returns the first thread block whose message has not arrived.
std::uint32_t SymbolicExecution::without_message(std::uint32_t id, BlockAt at, Partner from) const {
  std::uint32_t without = kNoIndex;
  ends_.each_received(id, at, from, [&](std::uint32_t sender, std::uint32_t to, std::uint32_t other) {
    if (connections_.waiting(sender, to) == 0) without = other;
    return without == kNoIndex;
  });
  return without;
}

// Returns the first thread block to which no slot is free.
std::uint32_t SymbolicExecution::without_slot(std::uint32_t id, BlockAt at, Partner to) const {
  std::uint32_t without = kNoIndex;
  ends_.each_sent(id, at, to, [&](std::uint32_t from, std::uint32_t receiver, std::uint32_t other) {
    if (connections_.waiting(from, receiver) >= ends_.slots(receiver, slots_)) without = other;
    return without == kNoIndex;
  });
  return without;
}

bool SymbolicExecution::wait(Waits what) {
  states_[id_].waits = what;
  states_[id_].waited = !next_.empty();
  if (!next_.empty()) next_[id_] = step_;
  return false;
}

void SymbolicExecution::wake(BlockAt at) {
  states_[blocks_.id(at.rank, at.block)].waits = Waits::no;
  ready_.push_back(at);
}

void SymbolicExecution::wake_waiters(std::uint32_t id) {
  std::uint32_t waiter = std::exchange(states_[id].first_waiter, kNoIndex);
  while (waiter != kNoIndex) {
    const std::uint32_t next = states_[waiter].next_waiter;
    wake(blocks_.at(waiter));
    waiter = next;
  }
}

bool SymbolicExecution::fail(const std::string& message) {
  error_ = place(at_.rank, at_.block, index_) + ": " + text(step_) + ": " + message;
  return false;
}

bool SymbolicExecution::perform() {
  if (step_.kind == Step::Kind::nothing) return true;
  if (receives(step_.kind) && !receive()) return false;
  if (reads_source(step_.kind) && !read()) return false;
  if (writes_destination(step_.kind) && !write()) return false;
  if (sends(step_.kind)) send();
  return true;
}

bool SymbolicExecution::receive() {
  bool first = true, right = true;
  ends_.each_received(id_, at_, step_.from, [&](std::uint32_t from, std::uint32_t to, std::uint32_t other) {
    right = receive_sum(from, to, std::exchange(first, false));
    if (states_[other].waits == Waits::for_slot) wake(blocks_.at(other));
    return right;
  });
  return right;
}

// Takes a message of the step and adds it to those of the step's other connections.
bool SymbolicExecution::receive_sum(std::uint32_t from, std::uint32_t to, bool first) {
  const std::uint32_t count = connections_.take(from, to, first ? values_ : more_values_);
  if (count != step_.count)
    return fail("the message is " + number(count) + (count == 1 ? " chunk" : " chunks"));
  for (std::uint32_t i = 0; !first && i < count; ++i) {
    if (!add(more_values_[i], values_[i])) return false;
  }
  return true;
}

bool SymbolicExecution::read() {
  if (values_.size() < step_.count) values_.resize(step_.count);
  for (std::uint32_t i = 0; i < step_.count; ++i) {
    if (!read_chunk(i)) return false;
  }
  return true;
}

bool SymbolicExecution::read_chunk(std::uint32_t i) {
  const ChunkAt at{step_.source.buffer, step_.source.chunk + i};
  const Cell cell = goal_.cell(at_.rank, at);
  if (!touch(at, cell, false)) return false;
  const Value held = cells_.get(at_.rank, cell);
  if (held.piece == kNothing) return fail(text(at, 1) + " holds nothing");
  if (receives(step_.kind)) return add(held, values_[i]);
  values_[i] = held;
  return true;
}

bool SymbolicExecution::add(const Value& there, Value& comes) {
  if (there.piece != comes.piece || there.piece == kNothing)
    return fail("adds " + goal_.text(comes, sets_) + " to " + goal_.text(there, sets_));
  const auto sum = sets_.join(there.ranks, comes.ranks);
  if (!sum) {
    return fail("adds " + goal_.text(comes, sets_) + " to " + goal_.text(there, sets_) +
                ", some of them twice");
  }
  comes.ranks = *sum;
  return true;
}

bool SymbolicExecution::write() {
  for (std::uint32_t i = 0; i < step_.count; ++i) {
    const ChunkAt at{step_.destination.buffer, step_.destination.chunk + i};
    const Cell cell = goal_.cell(at_.rank, at);
    if (!touch(at, cell, true)) return false;
    if (step_.kind == Step::Kind::reduce && !add(cells_.get(at_.rank, cell), values_[i])) return false;
    cells_.put(at_.rank, cell, values_[i]);
    if (at_.rank == watched_rank_ && cell.region == watched_.region && cell.index == watched_.index)
      last_write_ = place(at_.rank, at_.block, index_) + ": " + text(step_);
  }
  return true;
}

bool SymbolicExecution::touch(ChunkAt at, Cell cell, bool writes) {
  if (!shares_cells_) return true;
  error_ = order_->touched(at_.rank, at_.block, index_, step_, at, cell, writes);
  return error_.empty();
}

void SymbolicExecution::send() {
  ends_.each_sent(id_, at_, step_.to, [&](std::uint32_t from, std::uint32_t to, std::uint32_t other) {
    connections_.put(from, to, values_, step_.count);
    if (states_[other].waits == Waits::for_message) wake(blocks_.at(other));
    return true;
  });
}

bool SymbolicExecution::has_finished(std::uint32_t id) const {
  const BlockAt at = blocks_.at(id);
  return states_[id].finished == plan_.steps(at.rank, at.block);
}

Step SymbolicExecution::next_step(std::uint32_t id) const {
  const BlockAt at = blocks_.at(id);
  return plan_.step(at.rank, at.block, states_[id].finished);
}

std::uint32_t SymbolicExecution::waits_for(std::uint32_t id) const {
  const Step step = next_step(id);
  if (states_[id].waits == Waits::for_step) return blocks_.id(blocks_.at(id).rank, step.after_block);
  const BlockAt at = blocks_.at(id);
  return states_[id].waits == Waits::for_slot ? without_slot(id, at, step.to)
                                              : without_message(id, at, step.from);
}

std::string SymbolicExecution::text_of_wait(std::uint32_t id) const {
  const BlockAt other = blocks_.at(waits_for(id));
  if (states_[id].waits == Waits::for_step) {
    return "waits for step " + number(next_step(id).after_step) + " of thread block " + number(other.block);
  }
  const bool slot = states_[id].waits == Waits::for_slot;
  return std::string("waits for ") + (slot ? "a free slot towards " : "a message from ") +
         place(other.rank, other.block);
}

// Follows the waits from the first waiting thread block to the cause. The cause waits for one that has
// finished, or it is the first one found in a cycle.
std::string SymbolicExecution::stuck() const {
  std::uint32_t id = 0;
  while (id < blocks_.total() && has_finished(id)) ++id;
  if (id == blocks_.total()) return "";
  std::vector<bool> seen(blocks_.total(), false);
  while (!seen[id] && !has_finished(waits_for(id))) {
    seen[id] = true;
    id = waits_for(id);
  }
  const bool cycle = seen[id];
  if (cycle) {
    std::uint32_t first = id;
    for (std::uint32_t next = waits_for(id); next != id; next = waits_for(next))
      first = std::min(first, next);
    id = first;
  }
  const BlockAt at = blocks_.at(id);
  const std::uint32_t other = waits_for(id);
  return "deadlock: " + place(at.rank, at.block, states_[id].finished) + ": " + text(next_step(id)) + ": " +
         text_of_wait(id) +
         (cycle ? ", which is at step " + number(states_[other].finished) + " and " + text_of_wait(other)
                : ", which has finished");
}

std::string SymbolicExecution::unreceived() const {
  std::uint32_t from = 0, to = 0;
  if (!connections_.first_waiting(from, to)) return "";
  const BlockAt sender = ends_.end(from), receiver = ends_.end(to);
  std::uint32_t left = connections_.waiting(from, to), index = plan_.steps(sender.rank, sender.block);
  Step step;
  while (left > 0) {
    step = plan_.step(sender.rank, sender.block, --index);
    if (!sends(step.kind)) continue;
    ends_.each_sent(blocks_.id(sender.rank, sender.block), sender, step.to,
                    [&](std::uint32_t one, std::uint32_t other, std::uint32_t) {
                      if (one == from && other == to) --left;
                      return true;
                    });
  }
  return place(sender.rank, sender.block, index) + ": " + text(step) + ": " +
         place(receiver.rank, receiver.block) + " never receives it";
}

}  // namespace netsim::proof
