// PAT, parallel aggregated trees (Jeaugey, arXiv 2506.20252; NCCL 2.23 and later): all_gather and
// reduce_scatter in ceil(log2 p) steps for any p. It resembles Bruck's algorithm, but begins with the
// farthest partners, so that the messages over long distances are the small ones. Here the trees of all ranks
// are aggregated in full, as NCCL does while a step's messages fit into its buffers.
//
// The chunk of rank s spreads over a binomial tree. The rank at distance d after s receives it from the rank
// whose distance is d without its lowest bit. In the step of bit b, rank r sends to r + 2^b the chunks that
// it has by then. These are the chunks of ranks r - d for all multiples d of 2^(b+1), except one whose
// distance would exceed all ranks. Together it sends n(p-1)/p bytes. A reduce_scatter is the same backwards,
// with sums.
//
// A rank keeps the chunks in scratch, ordered by d with its bits reversed. The multiples of 2^(b+1) then come
// first, and the chunks received in the step of bit b follow them, in the same order. The chunk that is left
// out divides a step's chunks into two messages at most.
#include <algorithm>
#include <bit>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class PatPlan final : public RegularPlan {
 public:
  PatPlan(CollectiveKind kind, std::uint32_t ranks) : RegularPlan("pat", kind, ranks) {}

  std::uint32_t chunks() const override { return ranks_; }
  std::uint32_t scratch_chunks(std::uint32_t) const override { return ranks_; }
  std::uint32_t largest_count() const override {
    const Runs last = runs_of(0), before = runs_of(std::min(1U, bits() - 1));
    return std::max({last.first, last.second, before.first, before.second});
  }
  bool in_place() const override { return false; }
  std::uint32_t blocks(std::uint32_t) const override { return 1; }
  // The steps are copies of the rank's own chunk and of all chunks, with the messages between them.
  std::uint32_t steps(std::uint32_t, std::uint32_t) const override {
    std::uint32_t steps = 1 + ranks_;
    for (std::uint32_t bit = 0; bit < bits(); ++bit) steps += 2 * runs_of(bit).count();
    return steps;
  }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    const bool gathers = kind_ == CollectiveKind::all_gather;
    if (!gathers) index = steps(rank, block) - 1 - index;
    if (index == 0) return copy({gathers ? Buffer::input : Buffer::output, 0}, 0);
    --index;
    for (std::uint32_t bit = bits(); bit-- > 0; index -= 2 * runs_of(bit).count()) {
      if (index < 2 * runs_of(bit).count()) return exchange(rank, bit, index);
    }
    return copy_to_place(rank, index);
  }

 private:
  // Runs: the chunks of a step. `first` chunks come before the one that is left out and `second` after it; or
  // there are only `first`.
  struct Runs {
    std::uint32_t first = 0, second = 0;
    std::uint32_t count() const { return (first > 0 ? 1U : 0U) + (second > 0 ? 1U : 0U); }
  };

  std::uint32_t bits() const { return static_cast<std::uint32_t>(std::bit_width(ranks_ - 1)); }
  // Returns the number of multiples of 2^bit below p.
  std::uint32_t multiples(std::uint32_t bit) const { return ((ranks_ - 1) >> bit) + 1; }
  // Returns the place in scratch of the chunk of the rank at `distance` before the own one. Distances are
  // compared by their bits from the lowest on; a 0 comes before a 1.
  std::uint32_t place_of(std::uint32_t distance) const {
    std::uint32_t place = 0;
    for (std::uint32_t bit = 0; bit < bits(); ++bit) {
      const std::uint32_t below = distance & ((1U << bit) - 1);
      if ((distance >> bit & 1) != 0) place += ((ranks_ - 1 - below) >> bit >> 1) + 1;
    }
    return place;
  }
  Runs runs_of(std::uint32_t bit) const {
    const std::uint32_t held = multiples(bit + 1), last = (held - 1) << (bit + 1);
    if (last + (1U << bit) < ranks_) return {held, 0};
    const std::uint32_t left_out = place_of(last);
    return {left_out, held - left_out - 1};
  }

  // A reduce_scatter copies in the opposite direction.
  Step copy(ChunkAt user, std::uint32_t place) const {
    const bool in = user.buffer == Buffer::input;
    Step step;
    step.kind = Step::Kind::copy;
    step.source = in ? user : ChunkAt{Buffer::scratch, place};
    step.destination = in ? ChunkAt{Buffer::scratch, place} : user;
    return step;
  }
  Step copy_to_place(std::uint32_t rank, std::uint32_t distance) const {
    const Buffer user = kind_ == CollectiveKind::all_gather ? Buffer::output : Buffer::input;
    return copy({user, wrap(std::uint64_t{rank} + ranks_ - distance)}, place_of(distance));
  }

  // An all_gather sends these chunks up to r + 2^bit. A reduce_scatter, whose steps are counted backwards,
  // receives them from there.
  Step exchange(std::uint32_t rank, std::uint32_t bit, std::uint32_t index) const {
    const Runs runs = runs_of(bit);
    const bool gathers = kind_ == CollectiveKind::all_gather, up = index < runs.count();
    const std::uint32_t run = index % runs.count();
    const bool second = runs.first == 0 || run == 1;
    const std::uint32_t held = multiples(bit + 1);
    // At this rank the chunks lie among all multiples. At the peer they follow them, and none is left out.
    const std::uint32_t from_here = second ? runs.first + 1 : 0;
    const std::uint32_t from_there = held + (second ? runs.first : 0);
    const ChunkAt at{Buffer::scratch, up ? from_here : from_there};
    const std::uint32_t distance = 1U << bit;
    const Partner peer{wrap(std::uint64_t{rank} + (up ? distance : ranks_ - distance)), 0};
    Step step;
    step.source = step.destination = at;
    step.count = second ? runs.second : runs.first;
    if (up == gathers) {
      step.kind = Step::Kind::send;
      step.to = peer;
    } else {
      step.kind = gathers ? Step::Kind::receive : Step::Kind::receive_reduce_copy;
      step.from = peer;
    }
    return step;
  }
};

class Pat final : public CollectiveAlgorithm, public WithNcclTraits {
 public:
  NcclTraits nccl_traits() const override { return {.family = CostFamily::pat}; }
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    return std::make_unique<PatPlan>(kind, shape.ranks);
  }
};

const Registration<CollectiveAlgorithm> kPat{
    "pat",
    "runs all-gather and reduce-scatter over binomial trees of all ranks at once, far partners first, in "
    "log2(p) steps for any number of ranks",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Pat>(); }};

}  // namespace
}  // namespace netsim
