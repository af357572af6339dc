#include "sim/collectives/proof/step_order.h"

#include <algorithm>

#include "sim/collectives/proof/validity.h"
#include "sim/core/index.h"

namespace netsim::proof {

bool StepOrder::before(std::uint32_t rank, std::uint32_t other, std::uint32_t earlier, std::uint32_t block,
                       std::uint32_t step) {
  const std::uint32_t id = blocks_.id(rank, block), other_id = blocks_.id(rank, other);
  Sparse& near = within_rank_[id];
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
  for (to_do_.assign(1, reached); !to_do_.empty();) {
    const auto [at, steps] = to_do_.back();
    to_do_.pop_back();
    std::uint32_t& known = past[blocks_.id(at.rank, at.block)];
    for (; known < steps; ++known) push_after(at.rank, plan_.step(at.rank, at.block, known));
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
      if (!receives(step.kind) || sender_step(id, past[id]) == kNoIndex) continue;
      to_do_.push_back({{step.from.rank, step.from.block}, sender_step(id, past[id]) + 1});
    }
  }
}

bool StepOrder::small() {
  if (size_ != Size::unknown) return size_ == Size::small;
  const bool few = blocks_.total() <= kMaxBlocks && count_steps(plan_) <= kMaxSteps;
  size_ = few ? Size::small : Size::large;
  if (size_ == Size::small) match_messages();
  return size_ == Size::small;
}

// The k-th that a thread block receives from another one is the k-th that was sent there.
void StepOrder::match_messages() {
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> sent;  // by the two ends; never iterated
  const auto each = [&](auto&& visit) {
    for (std::uint32_t id = 0; id < blocks_.total(); ++id) {
      const BlockAt at = blocks_.at(id);
      const std::uint32_t steps = plan_.steps(at.rank, at.block);
      for (std::uint32_t i = 0; i < steps; ++i) visit(id, i, plan_.step(at.rank, at.block, i));
    }
  };
  const auto key = [](std::uint32_t from, std::uint32_t to) { return std::uint64_t{from} << 32 | to; };
  each([&](std::uint32_t id, std::uint32_t index, const Step& step) {
    if (sends(step.kind)) sent[key(id, blocks_.id(step.to))].push_back(index);
  });
  std::unordered_map<std::uint64_t, std::size_t> received;
  each([&](std::uint32_t id, std::uint32_t index, const Step& step) {
    if (index == 0) first_step_.resize(id + std::size_t{1}, sender_steps_.size());
    sender_steps_.push_back(kNoIndex);
    if (!receives(step.kind)) return;
    const std::uint64_t ends = key(blocks_.id(step.from), id);
    const std::vector<std::uint32_t>& steps = sent[ends];
    const std::size_t number = received[ends]++;
    if (number < steps.size()) sender_steps_.back() = steps[number];
  });
}

}  // namespace netsim::proof
