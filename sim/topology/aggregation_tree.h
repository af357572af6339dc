// AggregationTree: which switches of a fabric add up what some NICs send, and on which links (Graham et al.,
// Scalable Hierarchical Aggregation Protocol (SHArP), COMHPC 2016, section III: a tree of aggregation nodes
// in the switches, laid on the links of the fabric).
//
// The root is the switch from which the farthest NIC's switch is nearest, of these the one with the fewest
// links to all of them together; of equal ones the trees take one after the other, by number. From there
// every switch hangs on one that is a link nearer to the root, of equal links by number too. So the same
// fabric, NICs, outages and number make the same tree, and trees of several numbers spread over the fabric.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/topology/graph.h"

namespace netsim {

struct AggregationTree {
  struct Switch {
    NodeId node = kNoId;
    std::uint32_t parent = kNoId;  // its number in `switches`; kNoId: it is the root
    PortId up = kNoId;             // to the parent
    std::vector<PortId> down;      // to its children, switches and NICs, by port
  };
  std::vector<Switch> switches;     // the root first, each behind its parent
  std::vector<PortId> nic_ports;    // by NIC: into the tree
  std::vector<std::uint32_t> leaf;  // by NIC: the number of the switch that it is at
  std::string refused;              // why there is no tree, in words; empty: there is one

  // From a NIC up to the root, and from there down to it.
  std::vector<PortId> way_up(std::size_t nic) const;
  std::vector<PortId> way_down(std::size_t nic) const;
};

// Of different NICs, one at least. `down`: by port, those that are known to be down. `adds_up`: whether a
// switch of the fabric can. A switch that belongs to a host (as the routers of a torus do) never does.
AggregationTree aggregation_tree(const Graph& graph, std::span<const NodeId> nics,
                                 const std::vector<bool>& down, const std::function<bool(NodeId)>& adds_up,
                                 std::uint32_t number);

}  // namespace netsim
