// SwitchSums: how a switch keeps the sums of an aggregation group whose packets may come again.
// SwitchProtocol makes them for each switch of a tree. A protocol of one's own derives from both
// (docs/how-to/extend.md).
#pragma once

#include <cstdint>
#include <memory>

namespace netsim {

class SwitchSums {
 public:
  enum class Arrival : std::uint8_t {
    waits,      // the packet is added, and the sum waits for others
    completes,  // the packet is added as the last one of its sum
    absorbed,   // the packet came again, and its sum still waits for others
    repeats     // the packet came again, and its sum is complete
  };
  virtual ~SwitchSums() = default;
  // Handles packet `psn` of a member. `value` is the value of the packet, and is replaced by that of the sum
  // if it is complete.
  virtual Arrival add(std::uint32_t member, std::uint32_t psn, std::uint32_t& value) = 0;
};

class SwitchProtocol {
 public:
  virtual ~SwitchProtocol() = default;
  // Returns the number of sums that a switch keeps for each slot, which take its memory.
  virtual std::uint32_t copies() const = 0;
  // Returns the empty sums of a group with so many members. `slots` is a power of two.
  virtual std::unique_ptr<SwitchSums> sums(std::uint32_t slots, std::uint32_t members) const = 0;
};

}  // namespace netsim
