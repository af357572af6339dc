// SwitchFans: what switches do to packets besides passing them on: they copy those of a multicast and add up
// those of a reduction. Of one set of atoms; a switch and all links of a fan there are of that set.
//
// The packets of a reduction come from several members in equal number, of equal sizes and each member's in
// order: the n-th of each is added to the n-th of all others, and the last one of them that comes goes on, by
// its own path, as their sum. Until then the sum waits in the switch.
//
// What is copied and added up gives its room in the port's buffer back as soon as it has come, and waits in
// the switch, which has room for any number (what real ones have is not published). For a copy is a write and
// an addend the answer to a read: on NVLink these have virtual channels of their own, so neither stands in
// the other's way, as it would if both were credited to one buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/index.h"
#include "sim/topology/graph.h"

namespace netsim {

class SwitchFans {
 public:
  // Where a copy leaves the switch, and the index in the paths of the step after that.
  struct Branch {
    PortId port = kNoId;
    std::uint32_t path = 0;
  };
  // Numbers of fans, from 0 on. `from`: the ports that the members' packets come from, rising.
  std::uint32_t add_multicast(std::vector<Branch> branches) {
    fans_.push_back({std::move(branches), {}, {}, {}, 0});
    return last();
  }
  std::uint32_t add_reduction(std::vector<PortId> from) {
    const std::size_t members = from.size();
    fans_.push_back({{}, std::move(from), std::vector<std::uint32_t>(members, 0), {}, 0});
    return last();
  }

  // None: the fan is a reduction.
  const std::vector<Branch>& branches(std::uint32_t fan) const { return fans_[fan].branches; }
  // Of a reduction: a packet has come in from the port `from`; whether it was the last one of its sum.
  bool completes(std::uint32_t fan, PortId from);

 private:
  struct Fan {
    std::vector<Branch> branches;
    std::vector<PortId> from;
    std::vector<std::uint32_t> packets;   // that have come, by member
    std::vector<std::uint32_t> arrivals;  // of sum n at n mod size, a power of two; of those that are open
    std::uint32_t first = 0;              // open sum
  };
  std::uint32_t last() const { return static_cast<std::uint32_t>(fans_.size() - 1); }
  static void make_room(Fan& fan);

  std::vector<Fan> fans_;
};

}  // namespace netsim
