// Parts of a network that its lower switches join, such as racks and pods, with the upper tiers removed.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/topology/graph.h"

namespace netsim {

// Returns, for each node, its part, identified by one of the part's nodes. Two nodes are in one part if links
// join them without a fabric switch of tier `tier` or higher. Such a switch is a part of its own.
std::vector<std::uint32_t> parts_below(const Graph& graph, int tier);

}  // namespace netsim
