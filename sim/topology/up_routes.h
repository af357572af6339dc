// Routes of a graph in which some links carry nothing: links that are down, and circuits that are down.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sim/topology/topology.h"

namespace netsim {

// Returns the shortest routes without the ports that are `avoided`. Where there is none, and the graph has
// optical switches, it returns the shortest over all circuits that they can make. Packets then wait for the
// circuit.
std::unique_ptr<Routes> up_routes(const Graph& graph, std::span<const HostPort> nics,
                                  const std::vector<bool>& avoided);

}  // namespace netsim
