#include "sim/training/strategy/job_strategies.h"

#include <utility>

namespace netsim {
namespace {

// Throws ConfigError for an entry of the list that names a strategy whose parameters are keys of a workload.
void refuse_keys(const ConfigNode& item, const std::string& name) {
  const ComponentInfo* info = Catalogue::instance().find(Strategy::kComponentKind, name);
  if (info == nullptr || info->has_map()) return;
  std::string keys;
  for (const ParameterInfo& parameter : info->parameters)
    keys += (keys.empty() ? " (" : ", ") + parameter.name;
  item.fail("strategy '" + name + "' is not listed: the keys of " + info->owner +
            (keys.empty() ? "" : keys + ")") + " say whether a job has it");
}

}  // namespace

JobStrategies::JobStrategies(const std::string& workload, const ConfigNode& where, const ConfigNode& listed) {
  const Registry<Strategy>& registry = Registry<Strategy>::instance();
  std::vector<Entry> made;
  for (const ComponentInfo* info : Catalogue::instance().keys_of("workload", workload)) {
    if (info->kind == Strategy::kComponentKind)
      made.push_back({info->name, registry.create_named(info->name, where)});
  }
  if (!listed.is_null() && !listed.is_sequence())
    listed.fail("expected a list of strategies, as [{kind: NAME}]");
  for (const ConfigNode& item : listed.items()) {
    const std::string name = Registry<Strategy>::component_name(item, "");
    refuse_keys(item, name);
    made.push_back({name, registry.create_named(name, item)});
  }
  std::vector<OrderedStrategy> constraints;
  constraints.reserve(made.size());
  for (const Entry& entry : made) constraints.push_back({entry.name, entry.strategy->order()});
  for (const std::size_t i : order_strategies(constraints, where)) entries_.push_back(std::move(made[i]));
}

void JobStrategies::describe(JobShape& job) const {
  for (const Entry& entry : entries_) entry.strategy->describe(job);
}

void JobStrategies::complete(JobShape& job) const {
  for (const Entry& entry : entries_) entry.strategy->complete(job);
  job.strategies.clear();
  for (const Entry& entry : entries_) {
    if (entry.strategy->takes_part(job)) job.strategies.push_back(entry.name);
  }
}

void JobStrategies::check(const JobShape& job) const {
  for (const Entry& entry : entries_) entry.strategy->check(job);
}

double JobStrategies::operations_of_layer(const JobShape& job) const {
  double operations = 0;
  for (const Entry& entry : entries_) operations += entry.strategy->operations_of_layer(job);
  return operations;
}

std::vector<std::string> JobStrategies::notes(const JobShape& job) const {
  std::vector<std::string> notes;
  for (const Entry& entry : entries_) {
    for (std::string& note : entry.strategy->notes(job)) notes.push_back(std::move(note));
  }
  return notes;
}

void JobStrategies::apply(TrainingGraph& graph, const JobShape& job) const {
  std::vector<const Strategy*> active;
  for (const Entry& entry : entries_) {
    if (entry.strategy->takes_part(job)) active.push_back(entry.strategy.get());
  }
  for (const Strategy* strategy : active) strategy->divide(graph.mesh, graph.sharding);
  for (const Strategy* strategy : active) strategy->apply(graph, job);
}

}  // namespace netsim
