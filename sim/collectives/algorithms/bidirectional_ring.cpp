// Bidirectional ring: half of the buffer goes around the ring of ranks and the other half in the opposite
// direction (Jain & Sabharwal, ICS 2010). Thus it uses links in both directions, of which the ring uses one.
// It takes p-1 or 2(p-1) steps of n / 2p in each direction.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/ring_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class BidirectionalRing final : public CollectiveAlgorithm {
 public:
  PlanTraits traits() const override { return {.order = RankOrder::domains}; }
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
           kind == CollectiveKind::reduce_scatter;
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    return std::make_unique<RingPlan>("bidirectional_ring", kind, Dimensions{shape.ranks},
                                      std::vector<RingSlice>{{{0, 1}}, {{0, shape.ranks - 1}}});
  }
};

const Registration<CollectiveAlgorithm> kBidirectionalRing{
    "bidirectional_ring",
    "runs all-reduce, all-gather and reduce-scatter around a ring in both directions, with half of the "
    "buffer in each, for ranks with a separate link to each neighbour",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<BidirectionalRing>(); }};

}  // namespace
}  // namespace netsim
