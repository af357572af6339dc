// PlanCache: plans by (kind, ranks, root), made by the chosen algorithm when they are first asked
// for, proved once, shared by all GPUs. One per executor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "sim/collectives/execution/algorithm_choice.h"
#include "sim/collectives/plan.h"
#include "sim/core/shared_lookup.h"

namespace netsim {

class PlanCache {
 public:
  using Key = std::tuple<CollectiveKind, std::uint32_t, std::uint32_t>;  // kind, ranks, root (0 without one)
  using Value = Plan;

  explicit PlanCache(const AlgorithmChoice& algorithms) : algorithms_(algorithms) {}
  static Key key(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root) {
    return {kind, ranks, has_root(kind) ? root : 0};
  }
  // root < ranks; point-to-point has two ranks. Any thread may ask; the plan lives as long as the cache.
  // InputError where the algorithm has a limit on ranks. A plan that fails its proof is a mistake of its
  // algorithm (NETSIM_CHECK).
  const Plan& get(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root);

 private:
  const AlgorithmChoice& algorithms_;
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

using PlanLookup = SharedLookup<PlanCache>;

}  // namespace netsim
