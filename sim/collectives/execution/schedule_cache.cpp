#include "sim/collectives/execution/schedule_cache.h"

#include <string>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {
namespace {

std::unique_ptr<Schedule> make(const CollectiveAlgorithm& algorithm, const ScheduleCache::Key& key) {
  const auto [kind, ranks, root] = key;
  std::unique_ptr<Schedule> made = algorithm.schedule(kind, ranks, root);
  const std::string wrong = prove(*made);
  NETSIM_CHECK(wrong.empty(), std::string(made->algorithm()) + " " + to_string(kind) + " of " +
                                  std::to_string(ranks) + " ranks: " + wrong);
  return made;
}

}  // namespace

const Schedule& ScheduleCache::get(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root) {
  const Key key{kind, ranks, has_root(kind) ? root : 0};
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Schedule>& schedule = schedules_[key];
  if (!schedule) schedule = make(algorithms_.of(kind), key);
  return *schedule;
}

const Schedule& ScheduleLookup::get(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root) {
  const Schedule*& known = known_[{kind, ranks, has_root(kind) ? root : 0}];
  if (known == nullptr) known = &cache_.get(kind, ranks, root);
  return *known;
}

}  // namespace netsim
