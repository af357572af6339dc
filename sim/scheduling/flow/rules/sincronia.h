// Sincronia's order of coflows: bottleneck-select-scale-iterate (BSSI). Any work-conserving network that
// serves flows by the priority of their coflows then needs at most 4 times the best weighted sum of
// completion times. Source: Agarwal et al., "Sincronia: near-optimal network design for coflows", SIGCOMM
// 2018, algorithm 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"
#include "sim/scheduling/flow/rules/rule_flow.h"

namespace netsim {

// CoflowOrder: an order with a bound on what any order can reach.
struct CoflowOrder {
  std::vector<std::uint32_t> order;  // numbers of coflows, the one with the highest priority first
  double bound = 0;  // the weighted sum of completion times is never less; weight times seconds
};

// Returns the order by BSSI of one coflow for each weight. The link with the longest time of transfers
// selects who goes last: of its coflows the one with the least weight for its time there. Weights of the
// other coflows then lose their time on that link times that ratio. Ties go to the lower link and to the
// higher coflow. The bound is the value of the dual solution that these steps make; it counts completion
// times from now. Coflows without bytes left come first. It reads links, left and group of the flows. Weights
// are more than 0.
CoflowOrder bssi_order(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                       std::span<const double> weights);

}  // namespace netsim
