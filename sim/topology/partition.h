// Partition: which atoms share an event loop (core/engine.h). It follows the shape of the network: hosts and
// the switches near them together, so that most of what happens stays within a set, and sets small enough for
// a core's cache. It may decide how fast a run is, never what comes out.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/parameters.h"
#include "sim/topology/graph.h"

namespace netsim {

struct Partition {
  std::uint32_t sets = 1;
  std::vector<std::uint32_t> set_of_node;  // empty: one set
  // Of set b by set a at a * sets + b: the least delay of a link from a to b; kNever: there is none.
  std::vector<Time> lookahead;

  std::uint32_t set_of(NodeId node) const { return set_of_node.empty() ? 0 : set_of_node[node]; }
};

// The section `engine` of the configuration.
struct EngineParameters {
  std::int64_t sets = 0;
};
const Parameters<EngineParameters>& engine_parameters();

// About `sets` sets, or as many as suit `threads` threads and their caches (0). Links of a delay below 100 ns
// are never cut: there would be too little to do between two exchanges; nor are NVLinks, whose messages end
// at both ends at once.
Partition partition(const Graph& graph, std::uint32_t threads, std::uint32_t sets = 0);

}  // namespace netsim
