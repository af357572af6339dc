// The channel dependency graph of a fabric with its routing (Dally and Seitz, IEEE Transactions on Computers,
// 1987): its nodes are the virtual channels of all links; one depends on another where a packet may hold the
// buffer behind the one and wait for the other. Lossless traffic can deadlock only where it has a circle.
// Where packets escape from adaptive channels, those are left out, and one escape channel depends on another
// also where adaptive hops lie between them (Duato, IEEE TPDS, 1993).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/topology/routes.h"

namespace netsim {

struct DependencyCircle {
  std::vector<Hop> hops;  // each waits for the next, the last for the first; empty: there is none
  // Destinations whose ways were followed, of those that there are: fewer where the effort ended it. The ways
  // to some destinations do not show every circle.
  std::size_t followed = 0, destinations = 0;
};

// Follows the ways from all NICs to one destination after the other, spread over the fabric, until all are
// done or so many hops have been looked at. `fixed`: paths that packets take besides, in channel 0. `lossy`:
// by port, links whose packets are dropped instead of waiting without end, as those of a whole fabric are;
// empty: none.
DependencyCircle find_circle(const Graph& graph, const Routes& routes, Freedom freedom,
                             std::span<const std::vector<PortId>> fixed, std::uint64_t effort,
                             const std::vector<bool>& lossy = {});

// "a->b (channel 0), b->c (channel 1)", at most so many hops of it.
std::string describe(const DependencyCircle& circle, const Graph& graph, bool channels,
                     std::size_t most = 16);

}  // namespace netsim
