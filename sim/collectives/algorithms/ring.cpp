// Ring (Patarasuk & Yuan, J. of Parallel and Distributed Computing 69, 2009; NCCL's ring primitives). Rank r
// sends to r+1 and receives from r-1, one chunk of bytes / p a step. Reduce-scatter and all-gather take p-1
// steps. An all-reduce is both and takes 2(p-1) steps. No algorithm sends fewer bytes than its 2n(p-1)/p per
// rank.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/ring_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class Ring final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
           kind == CollectiveKind::reduce_scatter;
  }
  PlanTraits traits() const override { return {.order = RankOrder::rings}; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    return std::make_unique<RingPlan>("ring", kind, Dimensions{shape.ranks},
                                      std::vector<RingSlice>{{{0, 1}}});
  }
};

const Registration<CollectiveAlgorithm> kRing{
    "ring",
    "runs all-reduce, all-gather and reduce-scatter around a ring, with the fewest bytes in p-1 or 2(p-1) "
    "steps, for large buffers",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Ring>(); }};

}  // namespace
}  // namespace netsim
