// Routes without deadlock for any connected graph, in as few virtual channels as are given: layers.
//
// The switches are put in an order, breadth first from the middle of the graph; a link leads up or down in
// it. Within a channel a packet goes up, then down, so that the channel by itself can have no circle
// (up*/down*; Schroeder et al., Autonet, IEEE JSAC, 1991); where its way turns up again it goes on in the
// next channel. As packets only rise, no circle leads over several channels either. Of all ways with so many
// turns a packet takes the shortest; each hop that begins one of those is offered.
//
// So the channels are layers, as in LASH (Skeie, Lysne, Theiss, Layered Shortest Path Routing in Irregular
// System Area Networks, IPDPS 2002), with transitions between them and up*/down* in the last one, as in
// LASH-TOR (Skeie, Lysne, Flich, Lopez, Robles, Duato, IPDPS 2004) and DFSSSP (Domke, Hoefler, Nagel, IPDPS
// 2011), but that one order decides for all of them, which need not be searched for circles then. A tree
// needs one layer, a ring, mesh or torus of whatever sizes two. Ways of up to 2 n - 1 links between switches
// are the shortest with n layers on every graph; where more turns would be needed, ways are longer than the
// shortest, up to those of up*/down*.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/topology/topology.h"

namespace netsim {

// Of a destination's switch two bytes are kept for each switch, layer and direction, besides its next hops:
// for this many switches, when each is a destination, some 600 MB with 6 layers.
inline constexpr std::uint32_t kMostLayeredSwitches = 4096;

// `layers` = 0: as few as leave every way a shortest one, at most `most` (two or more); plain
// shortest_path_routes() where one is enough for all of them. While links are down, Routes::without() puts
// the switches in order anew, with as many layers as there are channels; where nothing leads on, a switch has
// no hop. A packet that was under way by other routes, and cannot go on by these, begins anew in the last
// layer.
std::unique_ptr<Routes> layered_routes(const Graph& graph, std::span<const HostPort> nics,
                                       std::uint32_t layers, std::uint32_t most);

}  // namespace netsim
