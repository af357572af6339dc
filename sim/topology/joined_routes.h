// Joins the routes of a cluster's fabrics to one, which the network asks.
#pragma once

#include <memory>
#include <vector>

#include "sim/topology/topology.h"

namespace netsim {

// Returns the routes of the whole cluster. `routes` are those of its fabrics, by number in Cluster::fabrics,
// whose ports and switches must be known. The cluster is read during the call only.
std::unique_ptr<Routes> join_routes(const Cluster& cluster, std::vector<std::unique_ptr<Routes>> routes);

}  // namespace netsim
