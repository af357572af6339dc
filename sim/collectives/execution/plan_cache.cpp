#include "sim/collectives/execution/plan_cache.h"

#include <string>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {
namespace {

std::unique_ptr<Plan> make_plan(const PlanCache::Key& key) {
  const auto& [algorithm, kind, ranks, root, shape] = key;
  std::unique_ptr<Plan> made = shape == GroupShape() ? algorithm->plan(kind, ranks, root)
                                                     : algorithm->plan_over(kind, ranks, root, shape);
  const std::string wrong = prove(*made);
  NETSIM_CHECK(wrong.empty(), std::string(made->algorithm()) + " " + to_string(kind) + " of " +
                                  std::to_string(ranks) + " ranks: " + wrong);
  return made;
}

}  // namespace

PlanCache::Key PlanCache::key(const CollectiveAlgorithm& algorithm, CollectiveKind kind, std::uint32_t ranks,
                              std::uint32_t root, const GroupShape& shape) {
  return {&algorithm, kind, ranks, has_root(kind) ? root : 0,
          algorithm.depends_on_shape() ? shape : GroupShape()};
}

const Plan& PlanCache::get(const CollectiveAlgorithm& algorithm, CollectiveKind kind, std::uint32_t ranks,
                           std::uint32_t root, const GroupShape& shape) {
  const Key wanted = key(algorithm, kind, ranks, root, shape);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Plan>& plan = plans_[wanted];
  if (!plan) plan = make_plan(wanted);
  return *plan;
}

}  // namespace netsim
