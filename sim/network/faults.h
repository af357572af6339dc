// Faults of links and switches over time, as the section `network.faults` gives them: loss rates, links that
// go down and come back, rates that change.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/topology/graph.h"

namespace netsim {

struct LinkChange {
  enum class Kind : std::uint8_t { down, up, rate, detected };
  Time at = 0;
  PortId port = 0;
  Kind kind = Kind::down;
  BitRate rate = 0;  // Kind::rate
};

struct FaultPlan {
  struct Loss {
    PortId port;
    double probability;
  };
  std::vector<Loss> losses;
  std::vector<LinkChange> changes;  // `detected` follows every down and up, which alternate for each port
};

// `faults`: a list of {link: "a-b" (both directions) or "a->b", or switch: NAME for all links of a switch;
// then any of loss: 0..1, down: TIME, up: TIME and rate: RATE with at: TIME}; null: none. A switch that is
// down takes with it what waits in it. Outages of one link may overlap: it is down while any of them lasts.
// `detection_delay`: from a link's going down or coming up until routes know.
FaultPlan read_faults(const ConfigNode& faults, const Graph& graph, Time detection_delay);

}  // namespace netsim
