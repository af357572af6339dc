#include "sim/workload/deferred_source.h"

namespace netsim {
namespace {

bool has_own_algorithms(const TaskSource& source) {
  bool found = false;
  const auto look = [&](const Task& task) {
    found = found || (task.kind() == TaskKind::collective && task.collective().algorithm != nullptr);
  };
  for (RankId rank = 0; rank < source.ranks() && !found; ++rank) source.for_each_task(rank, look);
  return found;
}

}  // namespace

DeferredSource::Facts::Facts(const TaskSource& source)
    : ranks(source.ranks()),
      axes(source.axes()),
      iterations(source.iterations()),
      tasks(source.total_tasks()),
      warm_up(source.warm_up()),
      least_pause(source.least_pause()),
      expected_iteration(source.expected_iteration()),
      uses_hosts(source.uses_hosts()),
      uses_threads(source.uses_threads()),
      own_algorithms(has_own_algorithms(source)),
      model_flops(source.model_flops()),
      names(source.names()),
      notes(source.notes()) {
  if (!source.works().empty()) works.emplace_back();
}

void DeferredSource::open() {
  tasks_ = make_();
  NETSIM_CHECK(tasks_->ranks() == facts_->ranks, "a source is made anew with other ranks");
  tasks_->open();
}

}  // namespace netsim
