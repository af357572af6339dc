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

namespace netsim {

class SlotPool {
 public:
  enum class Arrival : std::uint8_t {
    waits,      // the packet is added, and the sum waits for others
    completes,  // the packet is added as the last one of its sum
    absorbed,   // the packet came again, and its sum still waits for others
    repeats     // the packet came again, and its sum is complete
  };

  // `slots` is a power of two.
  SlotPool(std::uint32_t slots, std::uint32_t members);

  // Handles a member's packet. `value` is the value of the packet, and is replaced by that of the sum if it
  // is complete.
  Arrival add(std::uint32_t member, std::uint32_t psn, std::uint32_t& value);

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
