// LaunchDecision: the first rank of a group has decided which collective of the group is launched next.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/core/event.h"
#include "sim/core/ids.h"
#include "sim/core/units.h"

namespace netsim {

// LaunchDecision: the launch of a part of a collective. Plain data.
struct LaunchDecision {
  JobId job = 0;
  RankId by = 0;  // the rank that decided, the first one of the group
  GroupId group = 0;
  std::uint64_t communication = 0;  // id of the collective as a whole
  std::uint8_t priority = 0;
  std::uint8_t traffic_class = 0;
  bool last_part = false;  // the last part instead of the next one
};

// Passes the decision to JobSet::decided() at `time`, between events, by LogicalProcess::ask_call() of the
// set of the rank that decided.
using AnnounceDecision =
    std::function<void(std::uint32_t set, Time time, Origin& origin, const LaunchDecision& decision)>;

}  // namespace netsim
