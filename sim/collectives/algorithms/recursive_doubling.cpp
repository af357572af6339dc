// Recursive doubling (Thakur, Rabenseifner, Gropp, Int. J. of High Performance Computing Applications 19,
// 2005, sections 4.1 and 4.5): in step i ranks at a distance of 2^i exchange their data. An all_reduce
// exchanges whole buffers, in log2(p) steps of n bytes: the lowest latency. An all_gather is that of
// halving_doubling: log2(p) steps and n(p-1)/p bytes. A p other than 2^k takes two more steps of up to n
// bytes.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/butterfly_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class RecursiveDoubling final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather;
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    using Exchange = ButterflyPlan::Exchange;
    const bool reduces = kind == CollectiveKind::all_reduce;
    return std::make_unique<ButterflyPlan>("recursive_doubling", kind, shape.ranks,
                                           reduces ? Exchange::whole : Exchange::parts);
  }
};

const Registration<CollectiveAlgorithm> kRecursiveDoubling{
    "recursive_doubling",
    "runs all-reduce and all-gather by recursive doubling in log2(p) steps; an all-reduce sends the whole "
    "buffer in each, so it is for small ones",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<RecursiveDoubling>(); }};

}  // namespace
}  // namespace netsim
