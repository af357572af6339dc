// Three-step all-to-all, the hierarchical one of MSCCL (msccl-tools, alltoall_a100_three_step; Cowan et al.,
// MSCCLang, ASPLOS 2023). All data from the ranks of one group to those of another is gathered at one rank.
// It crosses in one message of k^2 blocks and is scattered in the other group. Between two groups of k ranks
// there is one message where two_step has k. In return all data crosses the links of both groups.
//
// A group numbers the others in their order, without itself. Its rank x mod k serves group number x, in both
// directions. So a rank serves (p/k - 1) / k groups, rounded up or down. All NICs are used from k + 1 groups
// on, and equally where k divides the number of other groups.
//
// The thread blocks are, in this order:
//
// - One sends between groups, one receives there, and one receives gathered data.
// - For each other rank of the group, one sends what that rank gathers.
// - For each other rank of the group, one sends it scattered data.
// - For each rank of the group, itself included, one receives what that rank scatters.
// - Two handle the data that stays in the group. They come last, because no other group waits for them.
//
// A gathered message needs the blocks of all ranks, so one thread block receives them in turn. Scattered data
// comes from several ranks at once, and none of them waits for another. Both ends take the groups in one
// order, from the next one on.
//
// The data gathered for a group, and the data from one, lies in scratch, sender after sender.
#include <algorithm>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/grouped_all_to_all.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class ThreeStepPlan final : public GroupedAllToAllPlan {
 public:
  static constexpr const char* kName = "three_step";
  ThreeStepPlan(std::uint32_t ranks, std::uint32_t group) : GroupedAllToAllPlan(kName, ranks, group) {}

  std::uint32_t scratch_chunks(std::uint32_t rank) const override {
    return 2 * others_of(inside(rank)) * message();
  }
  std::uint32_t largest_count() const override { return groups() == 1 ? 1 : message(); }
  std::uint32_t blocks(std::uint32_t) const override { return receive_inside() + 1; }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    if (block == send_inside()) return group_ - 1;
    if (block == receive_inside()) return group_;
    const std::uint32_t own = others_of(inside(rank));
    if (block == kSendOutside || block == kReceiveOutside) return own;
    if (block == kGathered) return own * group_;
    if (block < scatter(1)) return others_of(inside_behind(rank, block - gather(1) + 1));
    if (block < scattered(0)) return own * group_;
    return others_of(inside_before(rank, block - scattered(0))) * group_;
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    const std::uint32_t group = group_of_rank(rank);
    if (block == send_inside()) {
      const std::uint32_t distance = index + 1;
      return give(rank, distance, {Buffer::input, rank_of(group, inside_behind(rank, distance))},
                  receive_inside());
    }
    if (block == receive_inside()) {
      return take(rank, index, {Buffer::input, rank},
                  {Buffer::output, rank_of(group, inside_before(rank, index))}, send_inside());
    }
    if (block == kSendOutside) return send_outside(rank, index);
    if (block == kReceiveOutside) return receive_outside(rank, index);
    if (block == kGathered) return gathered_step(rank, index / group_, index % group_);
    if (block < scatter(1)) return gather_step(rank, block - gather(1) + 1, index);
    if (block < scattered(0))
      return scatter_step(rank, block - scatter(1) + 1, index / group_, index % group_);
    return scattered_step(rank, block - scattered(0), index / group_, index % group_);
  }

 private:
  static constexpr std::uint32_t kSendOutside = 0, kReceiveOutside = 1, kGathered = 2;
  // Return the thread block for the rank at a distance: 1 to k-1, or 0 to k-1 for scattered(). A single group
  // has none.
  static std::uint32_t gather(std::uint32_t distance) { return kGathered + distance; }
  std::uint32_t scatter(std::uint32_t distance) const { return gather(group_) + distance - 1; }
  std::uint32_t scattered(std::uint32_t distance) const { return scatter(group_) + distance; }
  std::uint32_t send_inside() const { return groups() == 1 ? 0 : scattered(group_); }
  std::uint32_t receive_inside() const { return send_inside() + 1; }

  std::uint32_t message() const { return group_ * group_; }  // in blocks
  // Returns how many other groups with numbers below `limit` are served by the rank at place `inside` of a
  // group.
  std::uint32_t others_below(std::uint32_t inside, std::uint32_t limit) const {
    limit = std::min(limit, groups() - 1);
    return limit > inside ? (limit - inside + group_ - 1) / group_ : 0;
  }
  std::uint32_t others_of(std::uint32_t inside) const { return others_below(inside, groups()); }
  // Return the n-th group that the rank serves, seen from `group`, and the number of a group.
  std::uint32_t other(std::uint32_t group, std::uint32_t inside, std::uint32_t n) const {
    const std::uint32_t number = inside + n * group_;
    return number < group ? number : number + 1;
  }
  std::uint32_t number_of(std::uint32_t other, std::uint32_t group) const {
    return other < group ? other : other - 1;
  }

  // Return the group that the rank at place `inside` sends to in its turn, or receives from. They begin with
  // the nearest group after, or before, their own. So all take messages in the order of the distance between
  // both groups.
  std::uint32_t receiver(std::uint32_t group, std::uint32_t inside, std::uint32_t turn) const {
    return other(group, inside, (others_below(inside, group) + turn) % others_of(inside));
  }
  std::uint32_t sender(std::uint32_t group, std::uint32_t inside, std::uint32_t turn) const {
    const std::uint32_t all = others_of(inside);
    return other(group, inside, (others_below(inside, group) + all - 1 - turn) % all);
  }

  ChunkAt outgoing(std::uint32_t turn) const { return {Buffer::scratch, turn * message()}; }
  ChunkAt incoming(std::uint32_t rank, std::uint32_t turn) const {
    return {Buffer::scratch, (others_of(inside(rank)) + turn) * message()};
  }
  static ChunkAt behind(ChunkAt at, std::uint32_t chunks) { return {at.buffer, at.chunk + chunks}; }
  static void wait_for(Step& step, std::uint32_t block, std::uint32_t index) {
    step.after_block = block;
    step.after_step = index;
  }

  // Sends the rank at that distance its share of what that rank gathers in its turn.
  Step gather_step(std::uint32_t rank, std::uint32_t distance, std::uint32_t turn) const {
    const std::uint32_t to = receiver(group_of_rank(rank), inside_behind(rank, distance), turn);
    Step step = give(rank, distance, {Buffer::input, rank_of(to, 0)}, kGathered);
    step.count = group_;
    return step;
  }
  Step gathered_step(std::uint32_t rank, std::uint32_t turn, std::uint32_t distance) const {
    const std::uint32_t to = receiver(group_of_rank(rank), inside(rank), turn);
    Step step = take(rank, distance, {Buffer::input, rank_of(to, 0)},
                     behind(outgoing(turn), inside_before(rank, distance) * group_), gather(distance));
    step.count = group_;
    return step;
  }
  Step send_outside(std::uint32_t rank, std::uint32_t turn) const {
    const std::uint32_t group = group_of_rank(rank), to = receiver(group, inside(rank), turn);
    Step step;
    step.kind = Step::Kind::send;
    step.count = message();
    step.source = outgoing(turn);
    step.to = {rank_of(to, number_of(group, to) % group_), kReceiveOutside};
    wait_for(step, kGathered, (turn + 1) * group_ - 1);
    return step;
  }
  Step receive_outside(std::uint32_t rank, std::uint32_t turn) const {
    const std::uint32_t group = group_of_rank(rank), from = sender(group, inside(rank), turn);
    Step step;
    step.kind = Step::Kind::receive;
    step.count = message();
    step.destination = incoming(rank, turn);
    step.from = {rank_of(from, number_of(group, from) % group_), kSendOutside};
    return step;
  }
  // The blocks of one receiver are not consecutive, so each is a message.
  Step scatter_step(std::uint32_t rank, std::uint32_t distance, std::uint32_t turn,
                    std::uint32_t from) const {
    const std::uint32_t peer = inside_behind(rank, distance);
    Step step = give(rank, distance, behind(incoming(rank, turn), from * group_ + peer), scattered(distance));
    wait_for(step, kReceiveOutside, turn);
    return step;
  }
  Step scattered_step(std::uint32_t rank, std::uint32_t distance, std::uint32_t turn,
                      std::uint32_t from) const {
    const std::uint32_t group = sender(group_of_rank(rank), inside_before(rank, distance), turn);
    Step step =
        take(rank, distance, behind(incoming(rank, distance == 0 ? turn : 0), from * group_ + inside(rank)),
             {Buffer::output, rank_of(group, from)}, scatter(distance));
    if (distance == 0) wait_for(step, kReceiveOutside, turn);
    return step;
  }
};

const Registration<CollectiveAlgorithm> kThreeStep{
    "three_step",
    "runs all-to-all in three steps: each group gathers the blocks for another group, sends them as one "
    "message and scatters them there, for very many hosts",
    group_parameters(), [](const GroupParameters& p, const ConfigNode&) {
      return std::make_unique<GroupedAllToAll<ThreeStepPlan>>(p);
    }};

}  // namespace
}  // namespace netsim
