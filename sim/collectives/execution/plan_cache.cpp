#include "sim/collectives/execution/plan_cache.h"

#include <string>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {
namespace {

std::unique_ptr<Plan> make(const CollectiveAlgorithm& algorithm, const PlanCache::Key& key) {
  const auto [kind, ranks, root] = key;
  std::unique_ptr<Plan> made = algorithm.plan(kind, ranks, root);
  const std::string wrong = prove(*made);
  NETSIM_CHECK(wrong.empty(), std::string(made->algorithm()) + " " + to_string(kind) + " of " +
                                  std::to_string(ranks) + " ranks: " + wrong);
  return made;
}

}  // namespace

const Plan& PlanCache::get(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root) {
  const Key wanted = key(kind, ranks, root);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Plan>& plan = plans_[wanted];
  if (!plan) plan = make(algorithms_.of(kind), wanted);
  return *plan;
}

}  // namespace netsim
