// Recursive halving and doubling (Rabenseifner, ICCS 2004; Thakur, Rabenseifner, Gropp, Int. J. of High
// Performance Computing Applications 19, 2005, sections 4.1, 4.4, 4.5). An all_reduce is a reduce_scatter by
// halving and an all_gather by doubling. In the halving partners come nearer and the parts that they exchange
// become smaller. For p = 2^k it takes 2k steps and 2n(p-1)/p bytes, as few as a ring's. Any other p takes
// two more steps of up to n bytes.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/butterfly_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class HalvingDoubling final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
           kind == CollectiveKind::reduce_scatter;
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    return std::make_unique<ButterflyPlan>("halving_doubling", kind, shape.ranks,
                                           ButterflyPlan::Exchange::parts);
  }
};

const Registration<CollectiveAlgorithm> kHalvingDoubling{
    "halving_doubling",
    "runs all-reduce, all-gather and reduce-scatter by recursive halving and doubling, with the fewest bytes "
    "in log2(p) or 2 log2(p) steps; numbers that are no powers of two cost two steps more",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<HalvingDoubling>(); }};

}  // namespace
}  // namespace netsim
