// Pairwise exchange: in step i (1 .. p-1) rank r sends its block for rank r+i and receives the block of rank
// r-i. Each step is a permutation. It takes (p-1) steps of n/p bytes; the own block is copied. In an
// all_to_all_v blocks have individual sizes, and the largest of a step delays the ranks that wait for it.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class PairwisePlan final : public RegularPlan {
 public:
  PairwisePlan(CollectiveKind kind, std::uint32_t ranks) : RegularPlan("pairwise", kind, ranks) {}

  std::uint32_t chunks() const override { return ranks_; }
  bool in_place() const override { return false; }
  std::uint32_t blocks(std::uint32_t) const override { return 1; }
  std::uint32_t steps(std::uint32_t, std::uint32_t) const override { return 2 * (ranks_ - 1) + 1; }

  Step step(std::uint32_t rank, std::uint32_t, std::uint32_t index) const override {
    Step step;
    if (index == 0) {
      step.kind = Step::Kind::copy;
      step.source = {Buffer::input, rank};
      step.destination = {Buffer::output, rank};
      return step;
    }
    const std::uint32_t distance = (index + 1) / 2;
    if (index % 2 == 1) {
      step.kind = Step::Kind::send;
      step.to = {(rank + distance) % ranks_, 0};
      step.source = {Buffer::input, step.to.rank};
    } else {
      step.kind = Step::Kind::receive;
      step.from = {(rank + ranks_ - distance) % ranks_, 0};
      step.destination = {Buffer::output, step.from.rank};
    }
    return step;
  }
};

class Pairwise final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_to_all || kind == CollectiveKind::all_to_all_v;
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    check_all_to_all("pairwise", kind, shape.ranks);
    return std::make_unique<PairwisePlan>(kind, shape.ranks);
  }
};

const Registration<CollectiveAlgorithm> kPairwise{
    "pairwise",
    "runs all-to-all (v) in p-1 steps, each a permutation of the ranks; every block goes straight to its "
    "rank",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Pairwise>(); }};

}  // namespace
}  // namespace netsim
