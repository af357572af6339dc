// PlanCache: plans by (algorithm, kind, group). A plan is made at the first request, proved once and shared
// by all GPUs. An executor has one cache.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "sim/collectives/algorithm.h"
#include "sim/core/shared_lookup.h"

namespace netsim {

class PlanCache {
 public:
  // The shape holds only the facts that the algorithm's plans depend on (PlanTraits).
  using Key = std::tuple<const CollectiveAlgorithm*, CollectiveKind, GroupShape>;
  using Value = Plan;

  static Key key(const CollectiveAlgorithm& algorithm, CollectiveKind kind, const GroupShape& shape);
  // Returns the plan; root < ranks, and point-to-point has two ranks. Any thread may call it. The plan lives
  // as long as the cache. Throws InputError for a group that the algorithm cannot serve. A plan that fails
  // its proof is an error of its algorithm (NETSIM_CHECK).
  const Plan& get(const CollectiveAlgorithm& algorithm, CollectiveKind kind, const GroupShape& shape);

 private:
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

using PlanLookup = SharedLookup<PlanCache>;

}  // namespace netsim
