// Boxes: servers that links join to the switches of packet fabrics, and that add up what the switches send
// them. The source is NetAgg (Mai et al., CoNEXT 2014). A box is a switch with a single link
// (aggregation_tree.h). The section `boxes` of the configuration adds them to fabrics of any kind.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/topology/graph.h"
#include "sim/topology/routes.h"

namespace netsim {

const ParameterTable& box_parameter_table();

// Adds boxes to the switches from node `first` to `end` - 1, as the section asks. A section that is null asks
// for none. Returns the routes of the fabric, which lead to no box. Throws ConfigError.
std::unique_ptr<Routes> with_boxes(const ConfigNode& section, Graph& graph, NodeId first, NodeId end,
                                   std::unique_ptr<Routes> routes);

}  // namespace netsim
