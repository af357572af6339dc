// SwitchFans: what switches do to packets besides passing them on: they copy those of a multicast and add up
// those of a reduction. Of one set of atoms; a switch and all links of a fan there are of that set.
//
// The packets of a reduction come from several members in equal number, of equal sizes and each member's in
// order: the n-th of each is added to the n-th of all others, and the last one of them that comes goes on, by
// its own path, as their sum. Until then the sum waits in the switch.
//
// The switch where a reduction turns (the root of an aggregation tree) is both: the sum is copied to all, or
// to one, and the others get bare copies. What a single member sends needs no adding up, and goes by the
// same steps.
//
// What is copied and added up gives its room in the port's buffer back as soon as it has come, and waits in
// the switch. For a copy is a write and an addend the answer to a read: on NVLink these have virtual channels
// of their own, so neither stands in the other's way, as it would if both were credited to one buffer. What
// NVSwitches have room for is not published, and not limited. In an aggregation tree members have no more
// packets on their way than the tree may have open (FanLanes), so a switch never holds more of a child.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/index.h"
#include "sim/core/units.h"
#include "sim/topology/graph.h"

namespace netsim {

class SwitchFans {
 public:
  // Where a copy leaves the switch, and the index in the paths of the step after that. `bare`: bytes of a
  // copy without data, which tells those who only send that their packet has gone into its sum, as the
  // acknowledgements of SHARP's reliable connections do; 0: it is a whole one.
  struct Branch {
    PortId port = kNoId;
    std::uint32_t path = 0;
    std::uint32_t bare = 0;
  };
  // A fan at one switch. `from`: the ports that the members' packets come from, rising; none: nothing is
  // added up. `branches`: none: the sum goes on by the path of its last packet. `latency`: of adding up.
  // `open`: so many sums at most wait for members; 0: any number.
  struct At {
    std::vector<PortId> from;
    std::vector<Branch> branches;
    Time latency = 0;
    std::uint32_t open = 0;
  };
  // Its number, from 0 on.
  std::uint32_t add(At at);

  const At& at(std::uint32_t fan) const { return fans_[fan].at; }
  // Of one that adds up: a packet has come in from the port `from`; whether it was the last one of its sum.
  bool completes(std::uint32_t fan, PortId from);

 private:
  struct Fan {
    At at;
    std::vector<std::uint32_t> packets;   // that have come, by member
    std::vector<std::uint32_t> arrivals;  // of sum n at n mod size, a power of two; of those that are open
    std::uint32_t first = 0;              // open sum
  };
  static void make_room(Fan& fan);

  std::vector<Fan> fans_;
};

}  // namespace netsim
