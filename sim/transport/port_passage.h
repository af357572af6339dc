// PortPassage: how a packet that is alone in the network passes a port of its path.
#pragma once

#include "sim/core/units.h"
#include "sim/topology/graph.h"

namespace netsim {

struct PortPassage {
  PortId port = 0;
  NodeId node = 0;         // the port's node
  bool at_switch = false;  // the node is a switch of the packet fabric
  // Times after the packet was handed to the first port of the path, ps. A message's first packet has a
  // longer header than the others: `departure` and `wire` are with it, the other two are without it.
  Time arrival = 0;               // the packet comes to this port
  Time departure = 0;             // its last bit has left this port
  Time wire = 0, least_wire = 0;  // duration of its transmission
};

}  // namespace netsim
