// StepOrder: which steps of a plan happen before which others, for any speeds of the thread blocks (Lamport,
// CACM 1978). The past of a step holds the steps before it in its thread block and those that it waits for
// with `after`. It also holds the steps that sent its messages, and the past of all these. Slots that become
// free are not counted, because there may be more of them than the proof assumes.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/collectives/plan.h"
#include "sim/collectives/proof/blocks.h"
#include "sim/collectives/proof/connection_ends.h"

namespace netsim::proof {

// Pasts are computed when they are first needed. One past is kept for each thread block, and it only grows.
// Thread blocks that share no chunk with others need none.
class StepOrder {
 public:
  // The steps of the plan must be valid (check_steps). The order is first sought near the rank. That covers
  // the `after`s, the copies that heads of AggregationGroups send to it, and its addends of their sums. Where
  // these do not order two steps, all messages are considered. That is done for plans of at most kMaxBlocks
  // thread blocks and kMaxSteps steps.
  //
  // The past in all ranks costs 4 bytes for each pair of thread blocks, and 8 for each message.
  StepOrder(const Plan& plan, const Blocks& blocks) : plan_(plan), blocks_(blocks), ends_(plan, blocks) {}
  static constexpr std::uint32_t kMaxBlocks = 8192;
  static constexpr std::uint64_t kMaxSteps = std::uint64_t{1} << 24;

  // Returns whether step `earlier` of thread block `other` has finished before step `step` of `block`
  // accesses anything. Both belong to the same rank. A later call for the same thread block must not have a
  // smaller `step`.
  bool before(std::uint32_t rank, std::uint32_t other, std::uint32_t earlier, std::uint32_t block,
              std::uint32_t step);

 private:
  // The number of past steps of each thread block, by its number in Blocks.
  using Sparse = std::unordered_map<std::uint32_t, std::uint32_t>;
  using Dense = std::vector<std::uint32_t>;
  struct Reached {
    BlockAt at;
    std::uint32_t steps;
  };

  bool small();
  void match_messages();
  static std::uint64_t key(std::uint32_t from, std::uint32_t to) { return std::uint64_t{from} << 32 | to; }
  void push_senders(BlockAt at, std::uint32_t index, const Step& step);
  void extend(Sparse& past, Reached reached);
  void extend(Dense& past, Reached reached);
  void push_after(std::uint32_t rank, const Step& step);
  void push_part(std::uint32_t rank, BlockAt at, std::uint32_t index, std::uint32_t aggregation);

  const Plan& plan_;
  const Blocks& blocks_;
  ConnectionEnds ends_;
  std::unordered_map<std::uint32_t, Sparse> near_rank_;  // by thread block
  std::unordered_map<std::uint32_t, Dense> everywhere_;  // by thread block
  std::vector<Reached> to_do_;
  enum class Size { unknown, small, large } size_ = Size::unknown;
  std::vector<std::uint64_t> first_step_;  // by thread block, index in taken_
  // For each step that receives: the index of its message on each of its connections.
  std::vector<std::uint32_t> taken_;
  // The steps that send on each connection. Never iterated.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> sent_;
};

}  // namespace netsim::proof
