// PlanCache: plans by (algorithm, kind, ranks, root, shape), made when they are first asked for, proved
// once, shared by all GPUs. One per executor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "sim/collectives/algorithm.h"
#include "sim/core/shared_lookup.h"

namespace netsim {

class PlanCache {
 public:
  // Algorithm, kind, ranks, root (0 without one), shape (none where it does not depend on it).
  using Key =
      std::tuple<const CollectiveAlgorithm*, CollectiveKind, std::uint32_t, std::uint32_t, GroupShape>;
  using Value = Plan;

  static Key key(const CollectiveAlgorithm& algorithm, CollectiveKind kind, std::uint32_t ranks,
                 std::uint32_t root, const GroupShape& shape);
  // root < ranks; point-to-point has two ranks. Any thread may ask; the plan lives as long as the cache.
  // InputError where the algorithm has a limit on ranks. A plan that fails its proof is a mistake of its
  // algorithm (NETSIM_CHECK).
  const Plan& get(const CollectiveAlgorithm& algorithm, CollectiveKind kind, std::uint32_t ranks,
                  std::uint32_t root, const GroupShape& shape);

 private:
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

using PlanLookup = SharedLookup<PlanCache>;

}  // namespace netsim
