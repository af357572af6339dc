// NetAgg: reductions by boxes at switches. The source is Mai et al., NetAgg: Using Middleboxes for
// Application-specific On-path Aggregation in Data Centres, CoNEXT 2014.
//
// A box is a server that a link joins to a switch. Switches send the workers' data to their boxes, each box
// adds up what comes, and one stream goes on to the next switch's box. The last box sends the sum to the
// master; in an all-reduce it sends the sum to all workers.
//
// So a box receives the streams of all its children over one link. With f children and a link of rate r, it
// adds up at min(B, r / f). A box that computes more slowly has network.switch.aggregation_rate.
//
// Several boxes at a switch share the work: trees take them in turn, and `trees` is their number. NetAgg runs
// over TCP, whose connections end at the boxes. Packets have the transport's size and headers.
//
// A worker is a host. Its ranks add up their data first, and each rank is the worker for its part.

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/direct_aggregation_plan.h"
#include "sim/collectives/algorithms/pool_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct NetAggParameters : PoolParameters {
  std::int64_t trees = 1;
};

Parameters<NetAggParameters> netagg_parameters() {
  using P = NetAggParameters;
  return with_pool_latencies(pool_parameters<P>().integer(
                                 "trees", &P::trees, {1, 64},
                                 "aggregation trees for each rank's part; where switches have several "
                                 "boxes, each tree uses another one"))
      .bytes(
          "chunk", &P::chunk, {0, kGibibyte},
          "largest message between the ranks of a host and into a tree; 0: all of a tree's part where hosts "
          "have one rank each, else 512 KiB");
}

class NetAgg final : public CollectiveAlgorithm, public WithKernels {
 public:
  explicit NetAgg(const NetAggParameters& p) : p_(p) {}
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::reduce || kind == CollectiveKind::all_reduce;
  }
  PlanTraits traits() const override {
    return {.protocol = Protocol::simple, .hosts = true, .sums = PlanTraits::FabricSums::of_data};
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    const std::uint32_t group = group_of(p_.group_size(shape, "netagg", kind), "netagg", kind, shape.ranks);
    return std::make_unique<DirectAggregationPlan>("netagg", kind, shape.ranks, shape.root, group,
                                                   static_cast<std::uint32_t>(p_.trees));
  }
  KernelModel kernel_model(const KernelLoad& load) const override {
    return p_.kernel_model(load, 1, 512 * kKibibyte);
  }

 private:
  NetAggParameters p_;
};

const Registration<CollectiveAlgorithm> kNetAgg{
    "netagg",
    "servers at switches add up what workers send, on its way to a master or to all (NetAgg, CoNEXT 2014)",
    netagg_parameters(),
    [](const NetAggParameters& p, const ConfigNode&) { return std::make_unique<NetAgg>(p); }};

}  // namespace
}  // namespace netsim
