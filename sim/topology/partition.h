// Partition: the sets of atoms that share an event loop (core/engine.h). It follows the shape of the network.
// A set holds hosts and the switches near them, so that most events stay within a set, and is small enough
// for a core's cache. It affects the speed of a run, never its results.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/parameters.h"
#include "sim/topology/graph.h"

namespace netsim {

struct Partition {
  std::uint32_t sets = 1;
  std::vector<std::uint32_t> set_of_node;  // empty: there is one set
  // Entry a * sets + b is the lookahead from set a to set b: the least delay of a link from a to b. kNever:
  // no link joins them.
  std::vector<Time> lookahead;

  std::uint32_t set_of(NodeId node) const { return set_of_node.empty() ? 0 : set_of_node[node]; }
};

// Parameters of the section `engine` of the configuration.
struct EngineParameters {
  std::int64_t sets = 0;
};
const Parameters<EngineParameters>& engine_parameters();

// Returns about `sets` sets; 0: as many as suit `threads` threads and their caches. Links with a delay below
// 100 ns are never cut, because a window between two exchanges would hold too few events. NVLinks are never
// cut either, because their messages end at both ends at the same time.
Partition partition(const Graph& graph, std::uint32_t threads, std::uint32_t sets = 0);

}  // namespace netsim
