// Routes without deadlock for any connected graph, in a given number of virtual channels, called layers.
//
// The switches have an order, breadth first from the middle of the graph; each link leads up or down in it.
// Within a layer a packet goes up, then down, so that a layer alone has no cycle (up*/down*; Schroeder et
// al., Autonet, IEEE JSAC, 1991). Where the route turns up again, the packet continues in the next layer.
// Packets only move to higher layers, so no cycle leads over several layers either. A packet takes a shortest
// one of the routes that the layers allow; add_hops() offers the first hop of each.
//
// Layers are as in LASH (Skeie, Lysne, Theiss, Layered Shortest Path Routing in Irregular System Area
// Networks, IPDPS 2002). Transitions between layers, and up*/down* in the last one, are as in LASH-TOR and
// DFSSSP. (LASH-TOR: Skeie, Lysne, Flich, Lopez, Robles, Duato, IPDPS 2004; DFSSSP: Domke, Hoefler, Nagel,
// IPDPS 2011.) Unlike there, one order of the switches serves all layers, so they need no search for cycles.
//
// A tree needs one layer; a ring, mesh or torus of any sizes needs two. With n layers, routes of up to 2n-1
// links between switches are shortest on every graph. Where more turns would be needed, routes are longer
// than the shortest, at most as long as those of up*/down*.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/topology/topology.h"

namespace netsim {

// Limit of the switches for which layers are computed. For each switch that is a destination, every switch,
// layer and direction takes two bytes, in addition to the next hops. With this many destinations and 6 layers
// it is about 600 MB.
inline constexpr std::uint32_t kMostLayeredSwitches = 4096;

// Returns such routes with `layers` layers. 0: as few as keep all routes shortest, at least two and at most
// `most`. If one layer suffices for all of them, it then returns plain shortest_path_routes().
//
// While links are down, Routes::without() computes a new order of the switches, with as many layers as there
// are channels. A switch has no hop where no route is left. A packet that used other routes before, and has
// no hop by these, starts again in the last layer.
std::unique_ptr<Routes> layered_routes(const Graph& graph, std::span<const HostPort> nics,
                                       std::uint32_t layers, std::uint32_t most);

}  // namespace netsim
