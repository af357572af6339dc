// Earliest deadline first, with admission. PDQ (Hong, Caesar and Godfrey, SIGCOMM 2012) serves flows in this
// order. Varys (SIGCOMM 2014) admits a transfer only if it then ends in time and makes no other late.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"
#include "sim/scheduling/flow/rules/rule_flow.h"

namespace netsim {

// Returns the numbers of the flows by deadline; ties go to the lower number. Where `admitted` has a value for
// each flow, admitted flows come before all others. An empty span admits all.
std::vector<std::uint32_t> edf_order(std::span<const RuleFlow> flows, std::span<const std::uint8_t> admitted);

// Returns the rate of each flow: in the order of edf_order() each gets all that its links have left, up to
// its limit. It reads links, limit and deadline.
std::vector<BitRate> edf_rates(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                               std::span<const std::uint8_t> admitted);

// Returns when each flow ends if edf_rates() allots anew at every end, from `now` on and with no other flow.
// kNever stands for a flow that gets no rate. Each end is at most 1 ps too late for each end before it.
std::vector<Time> edf_ends(std::span<const BitRate> capacity, std::span<const RuleFlow> flows, Time now);

// Decides on flows that were not admitted yet, in the order of their numbers. A flow is admitted if it ends
// in time beside the flows admitted before, and makes none of them miss its deadline; edf_ends() says so.
// `admitted` has 1 for flows admitted earlier, which stay so, and gets 1 for those admitted now. A flow
// without a deadline is never admitted, since it needs none. Each decision costs one call of edf_ends() for
// the admitted flows.
void admit_by_deadline(std::span<const BitRate> capacity, std::span<const RuleFlow> flows, Time now,
                       std::span<std::uint8_t> admitted);

}  // namespace netsim
