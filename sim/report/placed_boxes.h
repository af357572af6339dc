// PlacedBoxes: the boxes of switches that a drawing does not show in rows by tier, and of their hosts.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/report/canvas.h"
#include "sim/report/cluster_parts.h"

namespace netsim {

// HostsBox: hosts of a switch that share a box.
struct HostsBox {
  std::vector<std::uint32_t> hosts;
  Box box;
};

struct PlacedBoxes {
  std::vector<Box> switches;  // in the order that was given
  std::vector<HostsBox> hosts;
};

// Returns boxes of switches and of their hosts, no two of which overlap. Switches are on a cycle, or where
// the topology puts them, as parts.layout() says. Boxes of hosts are near their switch, if possible on the
// side away from the centre. With `alone` each host has a box of its own; otherwise hosts of a switch share
// one.
PlacedBoxes place_boxes(const ClusterParts& parts, const std::vector<NodeId>& switches, bool alone);

}  // namespace netsim
