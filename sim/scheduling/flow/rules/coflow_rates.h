// Varys' rule for coflows: smallest effective bottleneck first, then minimum allocation for desired duration.
// Source: Chowdhury, Zhong and Stoica, "Efficient coflow scheduling with Varys", SIGCOMM 2014, algorithm 1.
//
// The bottleneck time of a coflow (Gamma) is the largest time that a link needs for all its bytes of the
// coflow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"
#include "sim/scheduling/flow/rules/rule_flow.h"

namespace netsim {

// Backfill: whether what the rule leaves of the links is given to flows, too.
enum class Backfill : std::uint8_t { none, in_order };

// Returns the numbers of the coflows below `coflows`, that with the smallest bottleneck time first. Ties go
// to the lower number. Coflows without bytes left come first. It reads links, left and group of the flows;
// comparisons are exact.
std::vector<std::uint32_t> sebf_order(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                                      std::uint32_t coflows);

// Returns the rate of each flow. The coflows take their turns in `order`. All flows of a coflow get the rates
// with which they end together, at the bottleneck time on what the coflows before it leave. A coflow of which
// a link has nothing left gets no rate so. With Backfill::in_order each flow then gets what its links have
// left: flows go in the order of their coflows, within a coflow by number. Rates are rounded down, to 0 at
// the least.
std::vector<BitRate> madd_rates(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                                std::span<const std::uint32_t> order, Backfill backfill);

}  // namespace netsim
