#include "sim/collectives/proof/step_order.h"

#include <algorithm>

#include "sim/collectives/proof/validity.h"
#include "sim/core/index.h"

namespace netsim::proof {

bool StepOrder::before(std::uint32_t rank, std::uint32_t other, std::uint32_t earlier, std::uint32_t block,
                       std::uint32_t step) {
  const std::uint32_t id = blocks_.id(rank, block), other_id = blocks_.id(rank, other);
  Sparse& near = near_rank_[id];
  if (near[other_id] > earlier) return true;
  extend(near, {{rank, block}, step + 1});
  if (near[other_id] > earlier) return true;
  if (!small()) return false;
  Dense& all = everywhere_[id];
  all.resize(blocks_.total(), 0);
  if (all[other_id] > earlier) return true;
  extend(all, {{rank, block}, step + 1});
  return all[other_id] > earlier;
}

void StepOrder::push_after(std::uint32_t rank, const Step& step) {
  if (step.after_block != kNoIndex) to_do_.push_back({{rank, step.after_block}, step.after_step + 1});
}

void StepOrder::extend(Sparse& past, Reached reached) {
  const std::uint32_t rank = reached.at.rank;
  for (to_do_.assign(1, reached); !to_do_.empty();) {
    const auto [at, steps] = to_do_.back();
    to_do_.pop_back();
    std::uint32_t& known = past[blocks_.id(at.rank, at.block)];
    for (; known < steps; ++known) {
      const Step step = plan_.step(at.rank, at.block, known);
      push_after(at.rank, step);
      if (receives(step.kind) && step.from.aggregation != kNoIndex)
        push_part(rank, at, known, step.from.aggregation);
    }
  }
}

// Adds the sender of the message that a step receives from an AggregationGroup. A member's copy was sent by
// the head. For a head's sum it is the addend of `rank`, if that is a member. The k-th receive belongs to the
// k-th send.
void StepOrder::push_part(std::uint32_t rank, BlockAt at, std::uint32_t index, std::uint32_t number) {
  const AggregationGroup aggregation = plan_.aggregation(number);
  const bool sum = aggregation.is_head(at.rank, at.block);
  if (sum && !aggregation.has_member(rank)) return;
  const BlockAt sender =
      sum ? BlockAt{rank, aggregation.block} : BlockAt{aggregation.head, aggregation.head_block};
  std::uint32_t earlier = 0;
  for (std::uint32_t i = 0; i < index; ++i) {
    const Step step = plan_.step(at.rank, at.block, i);
    if (receives(step.kind) && step.from.aggregation == number) ++earlier;
  }
  const std::uint32_t steps = plan_.steps(sender.rank, sender.block);
  for (std::uint32_t i = 0; i < steps; ++i) {
    const Step step = plan_.step(sender.rank, sender.block, i);
    if (sends(step.kind) && step.to.aggregation == number && earlier-- == 0)
      return to_do_.push_back({sender, i + 1});
  }
}

void StepOrder::extend(Dense& past, Reached reached) {
  for (to_do_.assign(1, reached); !to_do_.empty();) {
    const auto [at, steps] = to_do_.back();
    to_do_.pop_back();
    const std::uint32_t id = blocks_.id(at.rank, at.block);
    for (; past[id] < steps; ++past[id]) {
      const Step step = plan_.step(at.rank, at.block, past[id]);
      push_after(at.rank, step);
      if (receives(step.kind)) push_senders(at, past[id], step);
    }
  }
}

void StepOrder::push_senders(BlockAt at, std::uint32_t index, const Step& step) {
  const std::uint32_t id = blocks_.id(at.rank, at.block), number = taken_[first_step_[id] + index];
  ends_.each_received(id, at, step.from, [&](std::uint32_t from, std::uint32_t to, std::uint32_t other) {
    const auto sent = sent_.find(key(from, to));
    if (sent != sent_.end() && number < sent->second.size())
      to_do_.push_back({blocks_.at(other), sent->second[number] + 1});
    return true;
  });
}

bool StepOrder::small() {
  if (size_ != Size::unknown) return size_ == Size::small;
  const bool few = blocks_.total() <= kMaxBlocks && count_steps(plan_) <= kMaxSteps;
  size_ = few ? Size::small : Size::large;
  if (size_ == Size::small) match_messages();
  return size_ == Size::small;
}

// Assigns the k-th message received on a connection to the k-th sent on it.
void StepOrder::match_messages() {
  std::unordered_map<std::uint64_t, std::uint32_t> received;
  for (std::uint32_t id = 0; id < blocks_.total(); ++id) {
    const BlockAt at = blocks_.at(id);
    const std::uint32_t steps = plan_.steps(at.rank, at.block);
    first_step_.push_back(taken_.size());
    for (std::uint32_t index = 0; index < steps; ++index) {
      const Step step = plan_.step(at.rank, at.block, index);
      taken_.push_back(kNoIndex);
      if (sends(step.kind)) {
        ends_.each_sent(id, at, step.to, [&](std::uint32_t from, std::uint32_t to, std::uint32_t) {
          sent_[key(from, to)].push_back(index);
          return true;
        });
      }
      if (!receives(step.kind)) continue;
      ends_.each_received(id, at, step.from, [&](std::uint32_t from, std::uint32_t to, std::uint32_t) {
        taken_.back() = received[key(from, to)]++;
        return true;
      });
    }
  }
}

}  // namespace netsim::proof
