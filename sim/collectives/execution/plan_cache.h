// PlanCache: plans by (algorithm, kind, ranks, root, shape). A plan is made at the first request, proved once
// and shared by all GPUs. An executor has one cache.
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
  // Algorithm, kind, ranks, root (0 without one), and shape (default where plans do not depend on it).
  using Key =
      std::tuple<const CollectiveAlgorithm*, CollectiveKind, std::uint32_t, std::uint32_t, GroupShape>;
  using Value = Plan;

  static Key key(const CollectiveAlgorithm& algorithm, CollectiveKind kind, std::uint32_t ranks,
                 std::uint32_t root, const GroupShape& shape);
  // Returns the plan; root < ranks, and point-to-point has two ranks. Any thread may call it. The plan lives
  // as long as the cache. Throws InputError where the algorithm has a limit on ranks. A plan that fails its
  // proof is an error of its algorithm (NETSIM_CHECK).
  const Plan& get(const CollectiveAlgorithm& algorithm, CollectiveKind kind, std::uint32_t ranks,
                  std::uint32_t root, const GroupShape& shape);

 private:
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

using PlanLookup = SharedLookup<PlanCache>;

}  // namespace netsim
