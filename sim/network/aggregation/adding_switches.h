// This file tells which switches of the fabrics add up.
#pragma once

#include <vector>

#include "sim/network/aggregation/number_format.h"
#include "sim/network/fabric_state.h"

namespace netsim {

// Returns, by node, whether it is a switch that adds up: network.switch.aggregation, and in
// network.switch.aggregation_switches if that is given. Without that list only boxes add up where there are
// some. Throws ConfigError for a name of no switch.
std::vector<bool> adding_switches(const FabricState& state);
// Returns the first switch of those that add up (`adds`) that cannot add numbers of this format; kNoId: all
// can.
NodeId switch_without_format(const FabricState& state, const std::vector<bool>& adds, NumberFormat format);

}  // namespace netsim
