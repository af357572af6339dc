// Parts of a network that its lower switches join: racks and pods, where the upper tiers are taken away.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/topology/graph.h"

namespace netsim {

// Of each node the part that it is in, by the number of one of its nodes: nodes are in one part where links
// join them without a fabric switch of tier `tier` or higher. Such a switch is a part of its own.
std::vector<std::uint32_t> parts_below(const Graph& graph, int tier);

}  // namespace netsim
