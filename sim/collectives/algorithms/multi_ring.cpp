// Multi-ring: the buffer is cut into equal slices, each on its own ring; no two rings use the same links.
// Ring i goes from rank r to r + h_i. Where a fabric joins the ranks directly, as `topoopt` does, the h_i are
// the jumps of its links, in both directions. Further rings, and those of other groups, take the numbers
// without a common divisor with p, in rising order (p = 5: 1, 2, 3, 4). These are the permutations of Wang et
// al., TopoOpt, NSDI 2023.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/ring_plan.h"
#include "sim/collectives/link_algorithm.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct MultiRingParameters {
  std::optional<std::int64_t> rings;
};

constexpr std::uint32_t kRings = 2;  // number of rings where no links join the ranks directly

std::vector<RingSlice> slices_of(std::uint32_t ranks, std::uint32_t rings,
                                 const std::vector<std::uint32_t>& jumps) {
  std::vector<RingSlice> slices;
  for (const std::uint32_t jump : jumps) {
    if (slices.size() < rings) slices.push_back({{0, jump}});
  }
  for (std::uint32_t hop = 1; hop < ranks && slices.size() < rings; ++hop) {
    const bool taken = std::find(jumps.begin(), jumps.end(), hop) != jumps.end();
    if (!taken && std::gcd(hop, ranks) == 1) slices.push_back({{0, hop}});
  }
  return slices;
}

class MultiRing final : public CollectiveAlgorithm, public LinkAlgorithm {
 public:
  // With `rings` 0 there is a ring for each jump, or kRings without jumps.
  explicit MultiRing(std::uint32_t rings, std::vector<std::uint32_t> jumps = {})
      : rings_(rings), jumps_(std::move(jumps)) {}
  PlanTraits traits() const override { return {.order = RankOrder::domains}; }
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
           kind == CollectiveKind::reduce_scatter;
  }
  const CollectiveAlgorithm& along(const std::vector<std::uint32_t>& jumps) const override {
    if (jumps == jumps_) return *this;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<MultiRing>& found = along_[jumps];
    if (found == nullptr) found = std::make_unique<MultiRing>(rings_, jumps);
    return *found;
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    const std::uint32_t rings = rings_ != 0      ? rings_
                                : jumps_.empty() ? kRings
                                                 : static_cast<std::uint32_t>(jumps_.size());
    const std::vector<RingSlice> slices = slices_of(shape.ranks, rings, jumps_);
    if (slices.size() < rings) {
      refuse("multi_ring", kind, shape.ranks,
             "of " + std::to_string(rings) + " rings was asked for, and there are at most " +
                 std::to_string(slices.size()));
    }
    return std::make_unique<RingPlan>("multi_ring", kind, Dimensions{shape.ranks}, slices);
  }

 private:
  std::uint32_t rings_;
  std::vector<std::uint32_t> jumps_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<std::uint32_t>, std::unique_ptr<MultiRing>> along_;  // by jumps
};

const Registration<CollectiveAlgorithm> kMultiRing{
    "multi_ring",
    "runs all-reduce, all-gather and reduce-scatter around several rings at once that share no links, for "
    "ranks with links to many others",
    Parameters<MultiRingParameters>().integer(
        "rings", &MultiRingParameters::rings, {1, 1024},
        "one for each jump of the links that join the ranks directly (`topoopt`), both ways; 2 where there "
        "are "
        "none",
        "rings, each with an equal part of the buffer; at most the numbers below p without a common divisor "
        "with p"),
    [](const MultiRingParameters& p, const ConfigNode&) {
      return std::make_unique<MultiRing>(static_cast<std::uint32_t>(p.rings.value_or(0)));
    }};

}  // namespace
}  // namespace netsim
