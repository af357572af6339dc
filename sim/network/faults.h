// Fault schedule of links and switches, read from the section `network.faults`: loss rates, links that go
// down and come back, rates that change.
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
  BitRate rate = 0;  // new rate, for Kind::rate
};

struct FaultSchedule {
  struct Loss {
    PortId port;
    double probability;
  };
  std::vector<Loss> losses;
  // Every down and up is followed by a `detected`. Down and up alternate for each port.
  std::vector<LinkChange> changes;
};

// Reads `faults`, a list of entries; null means no faults. An entry names a link, "a-b" for both directions
// or "a->b" for one, or a switch, for all its links. It has any of loss: 0..1, down: TIME, up: TIME, and
// rate: RATE with at: TIME.
//
// A switch that is down loses the packets that wait in it. Outages of one link may overlap; it is down while
// any of them lasts. `detection_delay` is the time from a link's change until the routes follow.
FaultSchedule read_faults(const ConfigNode& faults, const Graph& graph, Time detection_delay);

}  // namespace netsim
