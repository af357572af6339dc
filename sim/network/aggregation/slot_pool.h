// SlotPool: the sums that a switch keeps for an aggregation group whose packets may be lost. The source is
// SwitchML (Sapio et al., NSDI 2021, algorithm 3).
//
// Packet psn of each member belongs to slot psn mod s. A member sends the packet psn + s when it has the sum
// of psn. So members are at most one packet of a slot apart, and each slot has two versions in turn.
//
// A version keeps its sum until all members have sent their packets of the other one. A member that has lost
// the sum sends its packet again, and the sum is sent to it again.
//
// A bitmap for each slot and version holds whose packets are in the sum. So a packet that comes again is
// never added twice. The values that are added are 32-bit numbers, which stand for the data.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/aggregation/switch_sums.h"

namespace netsim {

class SlotPool final : public SwitchSums {
 public:
  // `slots` is a power of two.
  SlotPool(std::uint32_t slots, std::uint32_t members);

  Arrival add(std::uint32_t member, Addend& addend) override;

 private:
  struct Sum {
    std::uint32_t psn = 0;
    std::uint32_t value = 0;
    std::uint32_t packets = 0;  // number of packets added; `members`: complete; 0: never used
  };

  std::uint32_t slots_, shift_, members_, words_;
  std::vector<Sum> sums_;            // by version and slot
  std::vector<std::uint64_t> seen_;  // by version and slot: `words_` words, a bit per member
};

}  // namespace netsim
