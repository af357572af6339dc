// StepOrder: which steps of a plan have happened before which others, whatever the speeds of thread blocks
// (Lamport, CACM 1978): those before it in its thread block, those that it waits for with `after`, those that
// sent what it has received, and what happened before these. Slots that become free are not counted: there
// may be more of them than the proof is about.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/collectives/plan.h"
#include "sim/collectives/proof/blocks.h"
#include "sim/collectives/proof/connection_ends.h"

namespace netsim::proof {

// Pasts are worked out when somebody asks for them, and remembered for each thread block, which has one that
// only grows. Nothing is kept for thread blocks that share no chunk with others.
class StepOrder {
 public:
  // Of a plan whose steps are valid (check_steps). All messages are looked at in plans of at most kMaxBlocks
  // thread blocks and kMaxSteps steps, and where what is near the rank does not order two steps: the
  // `after`s, the copies that heads of fans send to it, and its addends of the sums that they take. The past
  // in all ranks costs 4 bytes for each two thread blocks, and each message 8.
  StepOrder(const Plan& plan, const Blocks& blocks) : plan_(plan), blocks_(blocks), ends_(plan, blocks) {}
  static constexpr std::uint32_t kMaxBlocks = 8192;
  static constexpr std::uint64_t kMaxSteps = std::uint64_t{1} << 24;

  // Whether step `earlier` of thread block `other` has finished before step `step` of `block`, of the same
  // rank, touches anything. Not to be asked with a smaller `step` of the same thread block later on.
  bool before(std::uint32_t rank, std::uint32_t other, std::uint32_t earlier, std::uint32_t block,
              std::uint32_t step);

 private:
  // How many steps of each thread block are past, by their number in Blocks.
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
  void push_part(std::uint32_t rank, BlockAt at, std::uint32_t index, std::uint32_t fan);

  const Plan& plan_;
  const Blocks& blocks_;
  ConnectionEnds ends_;
  std::unordered_map<std::uint32_t, Sparse> near_rank_;  // by thread block
  std::unordered_map<std::uint32_t, Dense> everywhere_;  // by thread block
  std::vector<Reached> to_do_;
  enum class Size { unknown, small, large } size_ = Size::unknown;
  std::vector<std::uint64_t> first_step_;  // by thread block, in taken_
  // Of a step that receives: of the messages of each of its connections which one.
  std::vector<std::uint32_t> taken_;
  // By connection: the steps that send on it. Never iterated.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> sent_;
};

}  // namespace netsim::proof
