// Two-step all-to-all (Cowan et al., MSCCLang, ASPLOS 2023, section 2.1). First rank i of a group gives rank
// j of its group the blocks for all ranks j of the other groups. Then each rank sends its counterpart in each
// other group all blocks from its own group in one message. Between two groups of k ranks there are k
// messages of k blocks instead of k^2 of one.
//
// Thread block 0 sends in the group and 1 receives there. 2 sends to other groups and 3 receives from there.
// The blocks for group b are collected in scratch from b k on; those of the own group go directly to the
// output. Groups are taken in their order from the next one on, so that each message to another group leaves
// when its blocks have arrived.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/grouped_all_to_all.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class TwoStepPlan final : public GroupedAllToAllPlan {
 public:
  static constexpr const char* kName = "two_step";
  TwoStepPlan(std::uint32_t ranks, std::uint32_t group) : GroupedAllToAllPlan(kName, ranks, group) {}

  std::uint32_t scratch_chunks(std::uint32_t) const override { return groups() == 1 ? 0 : ranks_; }
  std::uint32_t largest_count() const override { return groups() == 1 ? 1 : group_; }
  std::uint32_t blocks(std::uint32_t) const override { return 4; }
  std::uint32_t steps(std::uint32_t, std::uint32_t block) const override {
    if (block == kSendInside) return groups() * (group_ - 1);
    return block == kReceiveInside ? groups() * group_ : groups() - 1;
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    switch (block) {
      case kSendInside:
        return send_inside(rank, index / (group_ - 1), 1 + index % (group_ - 1));
      case kReceiveInside:
        return receive_inside(rank, index / group_, index % group_);
      case kSendOutside:
        return send_outside(rank, index);
      default:
        return receive_outside(rank, index);
    }
  }

 private:
  static constexpr std::uint32_t kSendInside = 0, kReceiveInside = 1, kSendOutside = 2, kReceiveOutside = 3;

  // Index `turn` stands for group turn + 1 after or before the own one; the own group is the last one.
  std::uint32_t group_behind(std::uint32_t rank, std::uint32_t turn) const {
    return (group_of_rank(rank) + 1 + turn) % groups();
  }
  std::uint32_t group_before(std::uint32_t rank, std::uint32_t turn) const {
    return (group_of_rank(rank) + groups() - 1 - turn) % groups();
  }
  // Returns the buffer for blocks to a group: scratch, where they are collected, or the output for the own
  // group.
  Buffer buffer_for(std::uint32_t rank, std::uint32_t group) const {
    return group == group_of_rank(rank) ? Buffer::output : Buffer::scratch;
  }

  Step send_inside(std::uint32_t rank, std::uint32_t turn, std::uint32_t distance) const {
    const std::uint32_t peer = inside_behind(rank, distance);
    return give(rank, distance, {Buffer::input, rank_of(group_behind(rank, turn), peer)}, kReceiveInside);
  }
  Step receive_inside(std::uint32_t rank, std::uint32_t turn, std::uint32_t distance) const {
    const std::uint32_t group = group_behind(rank, turn);
    return take(rank, distance, {Buffer::input, rank_of(group, inside(rank))},
                {buffer_for(rank, group), rank_of(group, inside_before(rank, distance))}, kSendInside);
  }
  Step send_outside(std::uint32_t rank, std::uint32_t turn) const {
    const std::uint32_t group = group_behind(rank, turn);
    Step step;
    step.kind = Step::Kind::send;
    step.count = group_;
    step.source = {Buffer::scratch, rank_of(group, 0)};
    step.to = {rank_of(group, inside(rank)), kReceiveOutside};
    step.after_block = kReceiveInside;
    step.after_step = (turn + 1) * group_ - 1;
    return step;
  }
  Step receive_outside(std::uint32_t rank, std::uint32_t turn) const {
    const std::uint32_t group = group_before(rank, turn);
    Step step;
    step.kind = Step::Kind::receive;
    step.count = group_;
    step.destination = {Buffer::output, rank_of(group, 0)};
    step.from = {rank_of(group, inside(rank)), kSendOutside};
    return step;
  }
};

const Registration<CollectiveAlgorithm> kTwoStep{
    "two_step",
    "all-to-all that collects in each group the blocks for another group: one message between counterparts "
    "instead of one for each pair of ranks; for many hosts and medium sizes",
    group_parameters(), [](const GroupParameters& p, const ConfigNode&) {
      return std::make_unique<GroupedAllToAll<TwoStepPlan>>(p);
    }};

}  // namespace
}  // namespace netsim
