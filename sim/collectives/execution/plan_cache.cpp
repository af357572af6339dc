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
  const Key key{kind, ranks, has_root(kind) ? root : 0};
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Plan>& plan = plans_[key];
  if (!plan) plan = make(algorithms_.of(kind), key);
  return *plan;
}

const Plan& PlanLookup::get(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root) {
  const Plan*& known = known_[{kind, ranks, has_root(kind) ? root : 0}];
  if (known == nullptr) known = &cache_.get(kind, ranks, root);
  return *known;
}

}  // namespace netsim
