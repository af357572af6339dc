// AggregationTree: the switches and links of a fabric that reduce what a group of NICs sends. Its aggregation
// nodes are switches, and its edges are links of the fabric. (Graham et al., Scalable Hierarchical
// Aggregation Protocol (SHArP), COMHPC 2016, section III.)
//
// The root is the switch with the least distance to the farthest NIC's switch, and of these one with the
// least sum of distances. Among equal ones, the tree's number selects one in turn. Every other switch has as
// parent a switch one link nearer to the root; the tree's number selects among equal links too. So the same
// fabric, NICs, outages and number give the same tree, and trees of several numbers spread over the fabric.
//
// A switch that reduces and has a single link is a **box** of the switch at the link's other end. The source
// is NetAgg (Mai et al., CoNEXT 2014). It reduces in the place of its switch, unless that one reduces itself.
// Packets make a detour: from the switch to its box and back.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/topology/graph.h"

namespace netsim {

struct AggregationTree {
  // A switch whose box reduces has two entries, which do not reduce. The lower one sends to the box, the
  // box to the upper one, and that one to the parent. At the root there is no upper one.
  struct Switch {
    NodeId node = kNoId;
    std::uint32_t parent = kNoId;  // its index in `switches`; kNoId: this is the root
    PortId up = kNoId;             // port to the parent
    std::vector<PortId> down;      // ports to its children, switches and NICs, in ascending order
    bool reduces = true;           // false: it forwards the packets of its children one by one
  };
  std::vector<Switch> switches;     // the root is first, and each switch comes after its parent
  std::vector<PortId> nic_ports;    // by NIC: its port into the tree
  std::vector<std::uint32_t> leaf;  // by NIC: index of the switch that it is joined to
  std::string refused;              // reason why there is no tree; empty: there is one

  // Returns the ports from a NIC up to the root, or from the root down to it.
  std::vector<PortId> way_up(std::size_t nic) const;
  std::vector<PortId> way_down(std::size_t nic) const;
};

// Returns the port by which a NIC joins the tree with this number; kNoId if none of its links to switches is
// up. `down` is as below.
PortId port_into_tree(const Graph& graph, NodeId nic, const std::vector<bool>& down, std::uint32_t number);

// Builds the tree of at least one NIC; the NICs must differ. `down` holds, by port, the ports that are known
// to be down. `can_reduce` returns whether a switch of the fabric can reduce. A switch that belongs to a
// host, such as the router of a torus, is never part of a tree.
//
// With `passes` other switches may be on the way to the root, which reduces. `root` is that switch; kNoId:
// the one that is nearest.
AggregationTree aggregation_tree(const Graph& graph, std::span<const NodeId> nics,
                                 const std::vector<bool>& down, const std::function<bool(NodeId)>& can_reduce,
                                 std::uint32_t number, bool passes = false, NodeId root = kNoId);

}  // namespace netsim
