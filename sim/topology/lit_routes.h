// Routes of a graph some of whose links carry nothing: links that are down, circuits that are dark.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sim/topology/topology.h"

namespace netsim {

// The shortest ways without the ports that are `avoided`. Where there is no way, and the graph has optical
// switches, the shortest of all that they can make: packets wait there until it is lit.
std::unique_ptr<Routes> lit_routes(const Graph& graph, std::span<const HostPort> nics,
                                   const std::vector<bool>& avoided);

}  // namespace netsim
