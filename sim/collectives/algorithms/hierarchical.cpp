// Hierarchical all-reduce through leaders (Jia et al., arXiv 1807.11205, section 3.3). Groups of k ranks are
// reduced to their first ranks, the leaders. The leaders run a ring, and the result is broadcast in each
// group.
//
// In a group k parts follow each other down a chain of its ranks, which takes 2(k-1) steps of n/k in each
// direction. The leaders' ring takes 2(p/k - 1) steps of n/(p/k). That is 4(k-1) + 2(p/k - 1) steps instead
// of a ring's 2(p-1), and more bytes.
//
// One thread block executes the three phases one after the other. There are p chunks, so that parts and the
// ring's chunks are whole ones.
#include <algorithm>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/grouping.h"
#include "sim/collectives/algorithms/ring_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class HierarchicalPlan final : public RegularPlan {
 public:
  HierarchicalPlan(std::uint32_t ranks, std::uint32_t group)
      : RegularPlan("hierarchical", CollectiveKind::all_reduce, ranks), group_(group) {}

  std::uint32_t chunks() const override { return ranks_; }
  std::uint32_t largest_count() const override {
    return std::max(group_ == 1 ? 1 : leaders(), leaders() == 1 ? 1 : group_);
  }
  bool in_place() const override { return true; }
  std::uint32_t blocks(std::uint32_t) const override { return 1; }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t) const override {
    return 2 * parts() + (is_leader(rank) ? leader_steps() : 0);
  }
  Step step(std::uint32_t rank, std::uint32_t, std::uint32_t index) const override {
    if (index < parts()) return step_up(rank, index);
    index -= parts();
    if (!is_leader(rank)) return step_down(rank, index);
    return index < leader_steps() ? step_of_leader(rank, index) : step_down(rank, index - leader_steps());
  }

 private:
  // Returns the number of parts in a group's chain; 0 where a rank is alone in its group.
  std::uint32_t parts() const { return group_ == 1 ? 0 : group_; }
  std::uint32_t leaders() const { return ranks_ / group_; }
  std::uint32_t leader_steps() const {
    return leaders() == 1 ? 0 : ring_steps(CollectiveKind::all_reduce, leaders());
  }
  bool is_leader(std::uint32_t rank) const { return rank % group_ == 0; }
  bool is_last(std::uint32_t rank) const { return rank % group_ == group_ - 1; }

  Step part_of_chain(std::uint32_t part) const {
    Step step;
    step.count = leaders();
    step.source = step.destination = {Buffer::input, part * step.count};
    return step;
  }
  Step step_up(std::uint32_t rank, std::uint32_t part) const {
    using Kind = Step::Kind;
    Step step = part_of_chain(part);
    step.kind = is_last(rank)     ? Kind::send
                : is_leader(rank) ? Kind::receive_reduce_copy
                                  : Kind::receive_reduce_send;
    if (!is_leader(rank)) step.to = {rank - 1, 0};
    if (!is_last(rank)) step.from = {rank + 1, 0};
    return step;
  }
  Step step_down(std::uint32_t rank, std::uint32_t part) const {
    using Kind = Step::Kind;
    Step step = part_of_chain(part);
    step.kind = is_leader(rank) ? Kind::send : is_last(rank) ? Kind::receive : Kind::receive_copy_send;
    if (!is_last(rank)) step.to = {rank + 1, 0};
    if (!is_leader(rank)) step.from = {rank - 1, 0};
    return step;
  }
  Step step_of_leader(std::uint32_t rank, std::uint32_t index) const {
    const RingStep what = ring_step(kind_, leaders(), rank / group_, index);
    Step step;
    step.kind = what.kind;
    step.count = group_;
    step.source = step.destination = {Buffer::input, what.chunk * group_};
    if (sends(step.kind)) step.to = {wrap(std::uint64_t{rank} + group_), 0};
    if (receives(step.kind)) step.from = {wrap(std::uint64_t{rank} + ranks_ - group_), 0};
    return step;
  }

  std::uint32_t group_;
};

class Hierarchical final : public CollectiveAlgorithm {
 public:
  explicit Hierarchical(const GroupParameters& p) : parameters_(p) {}
  PlanTraits traits() const override { return {.order = RankOrder::domains}; }
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    return std::make_unique<HierarchicalPlan>(shape.ranks,
                                              group_of(parameters_, "hierarchical", kind, shape.ranks));
  }

 private:
  GroupParameters parameters_;
};

const Registration<CollectiveAlgorithm> kHierarchical{
    "hierarchical",
    "runs all-reduce through the first rank of each group: it reduces in groups, all-reduces around a ring "
    "of these leaders and broadcasts in groups, in few steps for small buffers on many ranks",
    group_parameters(),
    [](const GroupParameters& p, const ConfigNode&) { return std::make_unique<Hierarchical>(p); }};

}  // namespace
}  // namespace netsim
