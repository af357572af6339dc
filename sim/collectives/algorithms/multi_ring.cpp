// Multi-ring: the buffer in equal slices around several rings at once, none of which uses another's links.
// Ring i goes from rank r to r + h_i, where h_i is the i-th number that has no common divisor with p: 1, then
// the others (the permutations of Wang et al., TopoOpt, NSDI 2023; p = 5: 1, 2, 3, 4). For ranks that have
// links to several others, as in a full mesh.
#include <numeric>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/ring_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct MultiRingParameters {
  std::int64_t rings = 2;
};

std::vector<RingSlice> slices_of(std::uint32_t ranks, std::uint32_t rings) {
  std::vector<RingSlice> slices;
  for (std::uint32_t hop = 1; hop < ranks && slices.size() < rings; ++hop) {
    if (std::gcd(hop, ranks) == 1) slices.push_back({{0, hop}});
  }
  return slices;
}

class MultiRing final : public CollectiveAlgorithm {
 public:
  explicit MultiRing(const MultiRingParameters& p) : rings_(static_cast<std::uint32_t>(p.rings)) {}
  RankOrder order() const override { return RankOrder::domains; }
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
           kind == CollectiveKind::reduce_scatter;
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t) const override {
    const std::vector<RingSlice> slices = slices_of(ranks, rings_);
    if (slices.size() < rings_) {
      refuse("multi_ring", kind, ranks,
             "of " + std::to_string(rings_) + " rings was asked for, and there are at most " +
                 std::to_string(slices.size()));
    }
    return std::make_unique<RingPlan>("multi_ring", kind, Dimensions{ranks}, slices);
  }

 private:
  std::uint32_t rings_;
};

const Registration<CollectiveAlgorithm> kRegistration{
    "multi_ring",
    "all-reduce, all-gather and reduce-scatter around several rings at once that share no links: for ranks "
    "with links to many others",
    Parameters<MultiRingParameters>().integer(
        "rings", &MultiRingParameters::rings, {1, 1024},
        "rings, each with an equal part of the buffer; at most the numbers below p without a common divisor "
        "with p"),
    [](const MultiRingParameters& p, const ConfigNode&) { return std::make_unique<MultiRing>(p); }};

}  // namespace
}  // namespace netsim
