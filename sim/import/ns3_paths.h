// Computes the round trips and bandwidth-delay products of a topology as HPCC's ns-3 simulator does.
#pragma once

#include <cstdint>

#include "sim/core/units.h"
#include "sim/topology/files/ns3_topology.h"

namespace netsim {

// PathFigures: the values that the tool computes from the topology (third.cc, CalculateRoute). Round trips
// are in whole nanoseconds on shortest paths, with data one way, without headers.
struct PathFigures {
  std::int64_t max_rtt_ns = 0;
  Bytes max_bdp = 0, min_bdp = INT64_MAX;
};

// Returns the values for data packets with `payload` bytes.
PathFigures path_figures(const Ns3Topology& topology, Bytes payload);

}  // namespace netsim
