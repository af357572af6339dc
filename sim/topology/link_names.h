// Names of links. Graph::port_name() gives each port a unique name. Users may name a whole bundle of links
// between the same two nodes, or one cable of it.
#pragma once

#include <string>

#include "sim/topology/graph.h"

namespace netsim {

// Returns the number of the port's link among the links between the same two nodes, by ascending id from 1.
// 0: it is the only one.
std::uint32_t cable_number(const Graph& graph, PortId port);
// Returns "edge7->agg2" for each cable of a bundle, where port_name() says "edge7->agg2#1".
std::string bundle_name(const Graph& graph, PortId port);
// Returns whether a user's name means this port. "edge7->agg2" means every port of a bundle, "edge7->agg2#1"
// one of them. means_link() takes names of both directions: "edge7-agg2" and "edge7-agg2#1".
bool means_port(const Graph& graph, PortId port, const std::string& name);
bool means_link(const Graph& graph, PortId port, const std::string& name);
// Returns the port from a node to the neighbour with that name. If there are several, it is the first, or
// with "agg2#3" the third. kNoId: there is none.
PortId port_to(const Graph& graph, NodeId from, const std::string& name);

}  // namespace netsim
