// A picture of a cluster for --draw: the fabric with its hosts, and the inside of a host of each kind.
#pragma once

#include <string>

#include "sim/topology/topology.h"

namespace netsim {

// Returns an SVG document. Switches are laid out by tier, with hosts below. With one tier only they are on a
// cycle, or where the topology puts them (Graph::draw_at). Links are coloured by rate.
//
// A row too long for the page shows its first entries and its last, with the number of omitted ones.
std::string draw_cluster(const Cluster& cluster);

}  // namespace netsim
