#include "sim/collectives/execution/aggregation_cache.h"

#include <string>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// Makes the aggregation groups of a plan. Consecutive groups mostly have the same members and share a list.
// The two groups of an in-network all-reduce refer to each other by their numbers. The numbers also
// distinguish the aggregation trees of the network.
AggregationCache::AggregationGroups make_aggregations(const Plan& plan, const std::vector<GpuId>& members) {
  AggregationCache::AggregationGroups made;
  made.members.reserve(plan.aggregations());
  for (std::uint32_t number = 0; number < plan.aggregations(); ++number) {
    const AggregationGroup aggregation = plan.aggregation(number);
    std::vector<GpuId> gpus;
    for (std::uint32_t i = 0; i < aggregation.members; ++i) gpus.push_back(members[aggregation.member(i)]);
    if (made.members.empty() || made.members.back() != gpus) made.members.push_back(std::move(gpus));
    made.aggregations.push_back({.head = members[aggregation.head], .members = made.members.back()});
    if (!plan.in_switch(aggregation.head, aggregation.head_block)) continue;
    const Step step = plan.step(aggregation.head, aggregation.head_block, 0);
    made.aggregations.back().allreduce = true;
    made.aggregations.back().pool = plan.pool();
    made.aggregations.back().number =
        step.from.aggregation == number ? step.to.aggregation : step.from.aggregation;
  }
  for (SwitchAggregation& aggregation : made.aggregations) {
    if (aggregation.allreduce) aggregation.others = made.aggregations[aggregation.number].members;
  }
  return made;
}

}  // namespace

const AggregationCache::AggregationGroups& AggregationCache::get(const Plan& plan,
                                                                 const std::vector<GpuId>& members,
                                                                 double share) {
  const std::lock_guard lock(mutex_);
  const Key wanted = key(plan, members, share);
  if (const auto known = aggregations_.find(wanted); known != aggregations_.end()) return known->second;
  AggregationGroups made = make_aggregations(plan, members);
  for (SwitchAggregation& aggregation : made.aggregations) {
    aggregation.share = share;
    aggregation.format = aggregation.pool.format ? aggregation.pool.format : parameters_.format;
  }
  check(plan, made);
  AggregationGroups& kept = aggregations_.emplace(wanted, std::move(made)).first->second;
  for (const SwitchAggregation& aggregation : kept.aggregations)
    kept.ids.push_back(endpoint_.add_aggregation(aggregation));
  return kept;
}

void AggregationCache::check(const Plan& plan, const AggregationGroups& aggregations) const {
  for (std::uint32_t number = 0; number < aggregations.aggregations.size(); ++number) {
    const SwitchAggregation& aggregation = aggregations.aggregations[number];
    if (aggregation.allreduce && aggregation.number < number)
      continue;  // checked with the other group of the pair
    const std::string objection = endpoint_.objection(aggregation);
    if (objection.empty()) continue;
    const std::string text = std::string(to_string(plan.kind())) + " of " + std::to_string(plan.ranks()) +
                             " GPUs by " + plan.algorithm() + ": " + objection;
    const ConfigNode& asked = parameters_.*CollectivesParameters::member(plan.kind());
    if (asked.is_null()) throw InputError(text);
    throw InputError(asked.place(), text);
  }
}

}  // namespace netsim
