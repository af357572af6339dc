// The channel dependency graph of a fabric with its routes (Dally and Seitz, IEEE Transactions on Computers,
// 1987). Its nodes are the virtual channels of all links. A channel depends on another where a packet may
// hold the first one's buffer while it waits for the second. Lossless traffic can deadlock only where the
// graph has a cycle.
//
// Where packets escape from adaptive channels, the graph leaves these out. One escape channel then also
// depends on another if adaptive hops lie between them (Duato, IEEE TPDS, 1993).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/topology/routes.h"

namespace netsim {

struct DependencyCycle {
  std::vector<Hop> hops;  // each waits for the next, the last for the first; empty: there is no cycle
  // Number of destinations whose routes were followed, and of all destinations. `followed` is less where the
  // search reached its limit; then it may have missed a cycle.
  std::size_t followed = 0, destinations = 0;
};

// Searches for a cycle. It follows the routes from all NICs to one destination after the other, spread over
// the fabric. It ends when all are done or `effort` hops were examined. `fixed` holds further paths of
// packets, in channel 0. `lossy` holds, by port, the links that drop packets instead of blocking without end;
// empty: none. All links of a fabric are lossy or none.
DependencyCycle find_cycle(const Graph& graph, const Routes& routes, RoutingFreedom freedom,
                           std::span<const std::vector<PortId>> fixed, std::uint64_t effort,
                           const std::vector<bool>& lossy = {});

// Returns the cycle as text, "a->b (channel 0), b->c (channel 1)", with at most `most` hops.
std::string describe(const DependencyCycle& cycle, const Graph& graph, bool channels, std::size_t most = 16);

}  // namespace netsim
