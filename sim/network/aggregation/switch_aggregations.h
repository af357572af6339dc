// SwitchAggregations: packets that switches copy (multicast) or sum (reduction), for one logical process. An
// aggregation group is one such group of ports at a switch. The switch and all links of its aggregation
// groups belong to the same logical process.
//
// Each member of a reduction sends equally many packets, with equal sizes and in order. The n-th packet of
// each member is added to the n-th of all others. The last of them to arrive goes on by its own path as their
// sum, and the sum waits in the switch until then.
//
// The switch at the root of an all-reduce tree does both: it sends copies of the sum to all members. If only
// one member receives the sum, the others get copies without data. A single member's packet needs no sum and
// takes the same steps.
//
// A packet that is copied or summed releases its space in the port's buffer on arrival and waits in the
// switch. The reason is that a copy is a write, and an addend is the answer to a read.
//
// On NVLink these have separate virtual channels and cannot block each other; in one credit buffer they
// would. The buffer size of NVSwitches for this is not published, and not limited here.
//
// In an all-reduce tree a member has no more packets in flight than the tree's limit of open sums
// (AggregationSessions). So a switch never holds more packets of a child.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/index.h"
#include "sim/core/units.h"
#include "sim/topology/graph.h"

namespace netsim {

class SwitchAggregations {
 public:
  // The port by which a copy leaves the switch, and the index in the paths of the step after it. `bare` is
  // the bytes of a copy without data; 0 means a whole copy.
  //
  // A bare copy tells a member that only sends that its packet is part of the sum, as acknowledgements on
  // SHARP's reliable connections do.
  struct Branch {
    PortId port = kNoId;
    std::uint32_t path = 0;
    std::uint32_t bare = 0;
  };
  // An aggregation group at one switch. `from` holds the ports that the members' packets come from,
  // ascending; empty means that nothing is summed. If `branches` is empty, the sum goes on by the path of its
  // last packet.
  //
  // `latency` is the time of summing. At most `open` sums wait for members; 0 means any number.
  struct At {
    std::vector<PortId> from;
    std::vector<Branch> branches;
    Time latency = 0;
    std::uint32_t open = 0;
  };
  // Adds an aggregation group and returns its index, counted from 0.
  std::uint32_t add(At at);

  const At& at(std::uint32_t aggregation) const { return aggregations_[aggregation].at; }
  // Counts a packet that arrived from the port `from` at an aggregation group that sums. Returns whether it
  // was the last one of its sum.
  bool completes(std::uint32_t aggregation, PortId from);

 private:
  struct AggregationGroup {
    At at;
    std::vector<std::uint32_t> packets;  // number of packets that have arrived, by member
    // Number of packets that have arrived for open sum n, at index n mod size. The size is a power of two.
    std::vector<std::uint32_t> arrivals;
    std::uint32_t first = 0;  // the oldest open sum
  };
  static void make_room(AggregationGroup& aggregation);

  std::vector<AggregationGroup> aggregations_;
};

}  // namespace netsim
