// A picture of a cluster for --draw: the fabric with its hosts, and the inside of a host of each kind.
#pragma once

#include <string>

#include "sim/topology/topology.h"

namespace netsim {

// Returns an SVG document. Switches are laid out by tier, with hosts below and other fabrics below these.
// With one tier only they are on a cycle, or where the topology puts them (Graph::draw_at).
//
// Colours tell rails apart, or else kinds and rates of links. Switches that hosts do not need are left out,
// and long rows are folded (tier_rows.h). No line crosses a name.
std::string draw_cluster(const Cluster& cluster);

}  // namespace netsim
