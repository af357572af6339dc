#include "sim/collectives/proof/validity.h"

#include <algorithm>
#include <array>
#include <vector>

#include "sim/collectives/proof/goal.h"
#include "sim/collectives/proof/wording.h"

namespace netsim::proof {
namespace {

constexpr std::uint32_t kMaxRanks = std::uint32_t{1} << 27;

// StepCheck: checks the steps of one thread block after the other.
class StepCheck {
 public:
  explicit StepCheck(const Plan& plan) : plan_(plan), goal_(plan), largest_count_(plan.largest_count()) {
    blocks_.reserve(plan.ranks());
    for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) blocks_.push_back(plan.blocks(rank));
    senders_.resize(plan.ranks());
  }

  std::string block(std::uint32_t rank, std::uint32_t block) {
    if (plan_.channel(rank, block) >= plan_.channels()) {
      return place(rank, block) + ": there is no channel " + number(plan_.channel(rank, block)) +
             ", the plan has " + number(plan_.channels());
    }
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch})
      chunks_[static_cast<std::size_t>(buffer)] = chunks_of(plan_, rank, buffer);
    ++checked_;
    const std::uint32_t steps = plan_.steps(rank, block);
    for (std::uint32_t index = 0; index < steps; ++index) {
      const Step step = plan_.step(rank, block, index);
      std::string wrong = one(rank, block, step);
      if (!wrong.empty()) return place(rank, block, index) + ": " + text(step) + ": " + wrong;
    }
    return "";
  }

 private:
  std::string one(std::uint32_t rank, std::uint32_t block, const Step& step) {
    std::string wrong;
    if (step.kind > Step::Kind::receive_reduce_copy_send) return "no such kind of step";
    if (step.after_block != kNoIndex) wrong = after(rank, block, step);
    if (step.kind == Step::Kind::nothing || !wrong.empty()) return wrong;
    const bool moves = sends(step.kind) || receives(step.kind);
    if (step.count == 0 || (moves && step.count > largest_count_))
      return "its count is not one of 1 to " + number(largest_count_) + ", the plan's largest";
    if (reads_source(step.kind)) wrong = chunks(step.source, step.count);
    if (wrong.empty() && writes_destination(step.kind)) wrong = chunks(step.destination, step.count);
    if (wrong.empty() && reads_source(step.kind) && writes_destination(step.kind))
      wrong = overlap(rank, step);
    if (wrong.empty() && sends(step.kind)) wrong = partner(rank, block, step.to);
    if (wrong.empty() && plan_.in_switch(rank, block)) return of_switch(rank, block, step);
    if (wrong.empty() && receives(step.kind)) wrong = sender(rank, block, step.from);
    if (wrong.empty() && moves && has_tokens(plan_.kind()) && sends(step.kind) && receives(step.kind))
      wrong = "blocks that are received and sent have individual sizes, so they need two steps";
    const bool by_ranks = plan_.kind() == CollectiveKind::all_to_all_v &&
                          plan_.counted(rank, step) == plan_.Plan::counted(rank, step);
    return wrong.empty() && moves && by_ranks ? straight(step) : wrong;
  }

  // Checks a switch's steps. They use one reduction and one multicast over the same ranks, or one of both has
  // a single member.
  std::string of_switch(std::uint32_t rank, std::uint32_t block, const Step& step) const {
    const Step first = plan_.step(rank, block, 0);
    if (step.kind != Step::Kind::receive_copy_send || step.from.aggregation == kNoIndex ||
        step.to.aggregation == kNoIndex)
      return "a switch only forwards from one aggregation group to another";
    if (step.from.aggregation != first.from.aggregation || step.to.aggregation != first.to.aggregation ||
        step.from.aggregation == step.to.aggregation)
      return "a switch forwards from one aggregation group to one other only";
    if (std::string wrong = partner(rank, block, step.from); !wrong.empty()) return wrong;
    const AggregationGroup up = plan_.aggregation(step.from.aggregation),
                           down = plan_.aggregation(step.to.aggregation);
    if (!up.is_head(rank, block) || !down.is_head(rank, block))
      return "it is not the head of both aggregation groups";
    const bool same = up.first == down.first && up.members == down.members && up.stride == down.stride;
    const bool to_one = down.members == 1 && up.has_member(down.first);
    const bool from_one = up.members == 1 && down.has_member(up.first);
    if (!same && !to_one && !from_one)
      return "the two aggregation groups have different members, and neither consists of one member of the "
             "other";
    return plan_.waits_between_blocks() ? "" : "the plan states that no thread block waits for another";
  }

  // Checks a step with a block of individual size. Such blocks go directly to their destination, so that both
  // ends know the size from their ranks.
  static std::string straight(const Step& step) {
    const bool sent = step.kind == Step::Kind::send && step.source.buffer == Buffer::input &&
                      step.source.chunk == step.to.rank;
    const bool received = step.kind == Step::Kind::receive && step.destination.buffer == Buffer::output &&
                          step.destination.chunk == step.from.rank;
    return sent || received ? "" : "a block with an individual size goes directly to its destination";
  }

  std::string after(std::uint32_t rank, std::uint32_t block, const Step& step) const {
    if (!plan_.waits_between_blocks()) return "the plan states that no thread block waits for another";
    if (step.after_block == block) return "a thread block cannot wait for itself";
    if (step.after_block < blocks_[rank] && plan_.in_switch(rank, step.after_block))
      return "a switch performs the steps of thread block " + number(step.after_block) +
             ", and no other thread block waits for them";
    if (step.after_block >= blocks_[rank])
      return "there is no thread block " + number(step.after_block) + ", the rank has " +
             number(blocks_[rank]);
    const std::uint32_t steps = plan_.steps(rank, step.after_block);
    if (step.after_step < steps) return "";
    return "thread block " + number(step.after_block) + " has no step " + number(step.after_step) +
           ", it has " + number(steps);
  }
  std::string chunks(ChunkAt at, std::uint32_t count) const {
    if (at.buffer > Buffer::scratch) return "no such buffer";
    const std::uint32_t there = chunks_[static_cast<std::size_t>(at.buffer)];
    if (std::uint64_t{at.chunk} + count <= there) return "";
    return "the " + std::string(text(at.buffer)) + " of the rank has " + number(there) + " chunks";
  }
  // Checks that source and destination do not overlap. Chunks move in any order, so a step must not write
  // what it still reads.
  std::string overlap(std::uint32_t rank, const Step& step) const {
    const Cell source = goal_.cell(rank, step.source), destination = goal_.cell(rank, step.destination);
    if (source.region != destination.region || source.index == destination.index) return "";
    const auto [low, high] = std::minmax(source.index, destination.index);
    return high - low < step.count ? "source and destination overlap" : "";
  }
  std::string partner(std::uint32_t rank, std::uint32_t block, Partner partner) const {
    if (partner.aggregation != kNoIndex) return end_of_group(rank, block, partner.aggregation);
    if (partner.rank >= blocks_.size()) return "there are " + number(blocks_.size()) + " ranks";
    if (partner.rank == rank) return "a rank has no connection with itself";
    if (partner.block < blocks_[partner.rank]) return "";
    return "rank " + number(partner.rank) + " has " + number(blocks_[partner.rank]) + " thread blocks";
  }
  std::string end_of_group(std::uint32_t rank, std::uint32_t block, std::uint32_t number_of_group) const {
    if (number_of_group >= plan_.aggregations())
      return "the plan has " + number(plan_.aggregations()) + " aggregation groups";
    const AggregationGroup aggregation = plan_.aggregation(number_of_group);
    if (aggregation.is_head(rank, block) || (aggregation.block == block && aggregation.has_member(rank)))
      return "";
    return "it is neither the head nor a member of the aggregation group";
  }
  // Checks that the thread block receives from one thread block of a rank only. The order of messages from
  // several would not be defined.
  std::string sender(std::uint32_t rank, std::uint32_t block, Partner from) {
    std::string wrong = partner(rank, block, from);
    if (!wrong.empty() || from.aggregation != kNoIndex || blocks_[from.rank] == 1) return wrong;
    Sender& known = senders_[from.rank];
    if (known.checked != checked_) known = {checked_, from.block};
    if (known.block == from.block) return "";
    return "it also receives from " + place(from.rank, known.block) +
           ", and the order of the two is not defined";
  }

  const Plan& plan_;
  Goal goal_;
  std::uint32_t largest_count_;
  std::vector<std::uint32_t> blocks_;      // by rank
  std::array<std::uint32_t, 3> chunks_{};  // number of chunks of the rank, by buffer
  std::uint32_t checked_ = 0;              // number of the thread block that is checked, from 1 on
  struct Sender {
    std::uint32_t checked = 0;  // the last thread block that was found to receive from this rank
    std::uint32_t block = 0;
  };
  std::vector<Sender> senders_;  // by rank
};

// Returns an empty string, or the error in an AggregationGroup.
std::string check_group(const Plan& plan, const AggregationGroup& aggregation) {
  if (aggregation.head >= plan.ranks() || aggregation.head_block >= plan.blocks(aggregation.head))
    return "there is no such head";
  if (aggregation.members == 0 || aggregation.stride == 0) return "it has no members";
  const std::uint64_t last = aggregation.first + std::uint64_t{aggregation.members - 1} * aggregation.stride;
  if (last >= plan.ranks()) return "there are " + number(plan.ranks()) + " ranks";
  for (std::uint32_t i = 0; i < aggregation.members; ++i) {
    if (plan.blocks(aggregation.member(i)) != plan.blocks(aggregation.first))
      return "its members have different numbers of thread blocks";
  }
  if (aggregation.block >= plan.blocks(aggregation.first))
    return "its members have no thread block " + number(aggregation.block);
  if (aggregation.head_block == aggregation.block && aggregation.has_member(aggregation.head))
    return "its head is a member with the same thread block";
  return "";
}

std::string check_groups(const Plan& plan) {
  for (std::uint32_t i = 0; i < plan.aggregations(); ++i) {
    if (const std::string wrong = check_group(plan, plan.aggregation(i)); !wrong.empty())
      return "aggregation group " + number(i) + ": " + wrong;
  }
  return "";
}

}  // namespace

std::string check_shape(const Plan& plan) {
  const std::uint64_t ranks = plan.ranks(), chunks = plan.chunks();
  if (ranks < 2) return "a plan needs two ranks";
  if (ranks > kMaxRanks) return "a plan has at most " + number(kMaxRanks) + " ranks";
  if (!is_collective(plan.kind()) && ranks != 2)
    return std::string(to_string(plan.kind())) + " has two ranks";
  if (plan.workers() == 0 || plan.workers() > ranks ||
      (plan.workers() < ranks && plan.kind() != CollectiveKind::all_reduce))
    return number(plan.workers()) + " of its ranks cannot be workers";
  if (plan.root() >= ranks) return "root " + number(plan.root()) + " is not a rank";
  if (chunks == 0) return "a plan needs a chunk";
  if (has_counts(plan.kind()) && chunks != ranks)
    return "a block is one chunk, so there are as many as ranks";
  if (has_parts(plan.kind()) && chunks % ranks != 0)
    return number(chunks) + " chunks cannot be shared out evenly among " + number(ranks) + " ranks";
  const bool by_source = info_of(plan.kind()).goal.contributors == ChunkRanks::source;
  if ((by_source ? ranks * chunks : chunks) > kMaxPieces) return "too many chunks";
  std::uint64_t blocks = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) blocks += plan.blocks(rank);
  return blocks + plan.aggregations() < UINT32_MAX ? check_groups(plan) : "too many thread blocks";
}

std::uint64_t count_steps(const Plan& plan) {
  std::uint64_t steps = 0;
  for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    for (std::uint32_t block = 0; block < plan.blocks(rank); ++block) steps += plan.steps(rank, block);
  }
  return steps;
}

std::string check_steps(const Plan& plan) {
  StepCheck check(plan);
  for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    const std::uint32_t blocks = plan.blocks(rank);
    for (std::uint32_t block = 0; block < blocks; ++block) {
      if (std::string wrong = check.block(rank, block); !wrong.empty()) return wrong;
    }
  }
  return "";
}

}  // namespace netsim::proof
