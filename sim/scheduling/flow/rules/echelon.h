// EchelonFlow's rule: flows of a group have deadlines of their own, one after the other, as computations need
// them. The group ends well when its largest tardiness, the time from a deadline to the end, is small.
// Source: Pan et al., "Efficient flow scheduling in distributed deep learning training with echelon
// formation", HotNets 2022. The paper gives the objective; allocation follows Varys with deadlines in place
// of one end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"
#include "sim/scheduling/flow/rules/coflow_rates.h"
#include "sim/scheduling/flow/rules/rule_flow.h"

namespace netsim {

// Returns the deadlines of an echelon: the first is `reference`, each other one `spacing` after the one
// before it. A pipeline has one spacing, the time of a microbatch. Sharded data parallelism has one for each
// layer, and flows of one layer get the same deadline.
std::vector<Time> echelon_deadlines(Time reference, std::span<const Time> spacing);

// Returns the least tardiness of each echelon below `echelons`, as if it had the links alone. On each link
// the flows go by deadline, and each may end so much after its own. It is negative where all flows can be
// early. It is kNever where a link has no capacity, and INT64_MIN for an echelon without bytes left.
std::vector<Time> least_tardiness(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                                  std::uint32_t echelons, Time now);

// Returns the numbers of the echelons, that with the smallest least tardiness first. Ties go to the lower
// number.
std::vector<std::uint32_t> echelon_order(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                                         std::uint32_t echelons, Time now);

// Returns the rate of each flow. The echelons take their turns in `order`, on what those before them leave. A
// flow gets the rate with which it ends at its deadline plus the least tardiness. Flows of an echelon take
// their rates by deadline. With Backfill::in_order flows then get what links have left: by echelon, then by
// deadline. All flows of an echelon need a deadline. It reads links, left, group and deadline.
std::vector<BitRate> echelon_rates(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                                   std::span<const std::uint32_t> order, Time now, Backfill backfill);

}  // namespace netsim
