// Chain: the buffer passes from rank to rank along a ring, as in NCCL's broadcast and reduce. Each channel
// uses another ring. A broadcast goes root, root+1, ..., root-1. A reduce goes root+1, root+2, ..., root, and
// every rank adds its own contribution. A round has one chunk; the rounds of a large buffer follow each other
// down the chain. This takes (p - 2 + rounds) steps of one slice.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class ChainPlan final : public RegularPlan {
 public:
  ChainPlan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root)
      : RegularPlan("chain", kind, ranks, root),
        first_(kind == CollectiveKind::reduce ? (root + 1) % ranks : root) {}

  std::uint32_t chunks() const override { return 1; }
  bool in_place() const override { return true; }
  std::uint32_t blocks(std::uint32_t) const override { return 1; }
  std::uint32_t steps(std::uint32_t, std::uint32_t) const override { return 1; }

  Step step(std::uint32_t rank, std::uint32_t, std::uint32_t) const override {
    Step step;
    step.kind = kind_of(rank);
    step.destination = {Buffer::output, 0};
    if (sends(step.kind)) step.to = {(rank + 1) % ranks_, 0};
    if (receives(step.kind)) step.from = {(rank + ranks_ - 1) % ranks_, 0};
    return step;
  }

 private:
  Step::Kind kind_of(std::uint32_t rank) const {
    using Kind = Step::Kind;
    if (rank == first_) return Kind::send;
    const bool last = (rank + 1) % ranks_ == first_;
    if (kind_ == CollectiveKind::reduce) return last ? Kind::receive_reduce_copy : Kind::receive_reduce_send;
    return last ? Kind::receive : Kind::receive_copy_send;
  }

  std::uint32_t first_;  // first rank of the chain; the last one is the rank before it
};

class Chain final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  }
  PlanTraits traits() const override { return {.order = RankOrder::rings}; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    return std::make_unique<ChainPlan>(kind, shape.ranks, shape.root);
  }
};

const Registration<CollectiveAlgorithm> kChain{
    "chain",
    "runs broadcast and reduce from rank to rank, slice after slice; it has full bandwidth for large buffers "
    "and p-1 steps of latency",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Chain>(); }};

}  // namespace
}  // namespace netsim
