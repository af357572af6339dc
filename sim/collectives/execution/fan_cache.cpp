#include "sim/collectives/execution/fan_cache.h"

#include <string>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// Makes the aggregation groups of a plan. Consecutive groups mostly have the same members and share a list.
// The two groups of an in-network all-reduce refer to each other by their numbers. The numbers also
// distinguish the aggregation trees of the network.
FanCache::Fans make_fans(const Plan& plan, const std::vector<std::uint32_t>& members) {
  FanCache::Fans made;
  made.members.reserve(plan.fans());
  for (std::uint32_t number = 0; number < plan.fans(); ++number) {
    const Fan fan = plan.fan(number);
    std::vector<std::uint32_t> gpus;
    for (std::uint32_t i = 0; i < fan.members; ++i) gpus.push_back(members[fan.member(i)]);
    if (made.members.empty() || made.members.back() != gpus) made.members.push_back(std::move(gpus));
    made.fans.push_back({members[fan.head], made.members.back()});
    if (!plan.in_switch(fan.head, fan.head_block)) continue;
    const Step step = plan.step(fan.head, fan.head_block, 0);
    made.fans.back().turned = true;
    made.fans.back().number = step.from.fan == number ? step.to.fan : step.from.fan;
  }
  for (SwitchFan& fan : made.fans) {
    if (fan.turned) fan.others = made.fans[fan.number].members;
  }
  return made;
}

}  // namespace

const FanCache::Fans& FanCache::get(const Plan& plan, const std::vector<std::uint32_t>& members,
                                    double share) {
  const std::lock_guard lock(mutex_);
  const Key wanted = key(plan, members, share);
  if (const auto known = fans_.find(wanted); known != fans_.end()) return known->second;
  Fans made = make_fans(plan, members);
  for (SwitchFan& fan : made.fans) fan.share = share;
  check(plan, made);
  return fans_.emplace(wanted, std::move(made)).first->second;
}

void FanCache::check(const Plan& plan, const Fans& fans) const {
  for (std::uint32_t number = 0; number < fans.fans.size(); ++number) {
    const SwitchFan& fan = fans.fans[number];
    if (fan.turned && fan.number < number) continue;  // checked with the other group of the pair
    const std::string objection = endpoint_.objection(fan);
    if (objection.empty()) continue;
    const std::string text = std::string(to_string(plan.kind())) + " of " + std::to_string(plan.ranks()) +
                             " GPUs by " + plan.algorithm() + ": " + objection;
    const ConfigNode& asked = parameters_.*CollectivesParameters::member(plan.kind());
    if (asked.is_null()) throw InputError(text);
    throw InputError(asked.place(), text);
  }
}

}  // namespace netsim
