// A picture of a cluster for --draw: the fabric with its hosts, and what is inside a host of each kind.
#pragma once

#include <string>

#include "sim/topology/topology.h"

namespace netsim {

// An SVG document. Switches are laid out by tier, hosts below; where there is one tier only, on a circle, or
// where the topology puts them (Graph::draw_at). Links are coloured by rate. Of rows too long for the page
// the first ones and the last one are shown, with a note of how many are left out.
std::string draw_cluster(const Cluster& cluster);

}  // namespace netsim
