// SlotPaths: finds the paths of flows, with the times of their ports, for SlotArbiter. Private to
// sim/scheduling/flow.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/scheduling/flow/flow_scheduler.h"
#include "sim/scheduling/flow/rules/slot_arbiter.h"

namespace netsim {

// SlotLength: how a slot is used.
struct SlotLength {
  Time length = 0;  // from the begin of one slot to the next
  Time sends = 0;   // a flow may begin packets for so long
  double use = 1;   // share of the time of a port that packets take; the rest separates two reservations
};

// FlowPaths: the paths of one flow, by path hint.
struct FlowPaths {
  std::vector<SlotPath> paths;
  std::uint32_t from_rack = 0, to_rack = 0;
  // Longest and shortest time of a full packet at the first port (PortPassage); 0: the paths are not known.
  Time wire = 0, least_wire = 0;
  // The first port is faster than another one by this; 0: it is not. Packets of a slot leave at this rate.
  BitRate rate = 0;
};

class SlotPaths {
 public:
  // Returns the first `most` paths of a flow, with the times for which the packets of a slot need their
  // ports. Each packet has `payload` bytes, or transport.mtu if that is less.
  FlowPaths find(const FlowsView& view, const FlowView& flow, const SlotLength& slot, std::uint32_t most,
                 Bytes payload);
  // Returns the pod of each rack that a path came from or led to.
  std::span<const std::uint32_t> pods() const { return pod_of_; }

 private:
  // Ends: the first and the last switch of a flow's paths, and the lowest number of a switch next to each.
  struct Ends {
    NodeId from = 0, to = 0, from_pod = kNoId, to_pod = kNoId;
  };
  std::uint32_t rack(NodeId node, NodeId pod);

  std::map<NodeId, std::uint32_t> racks_, pods_;  // numbers
  std::vector<std::uint32_t> pod_of_;             // by number of the rack
};

}  // namespace netsim
