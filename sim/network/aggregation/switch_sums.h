// SwitchSums: how a switch keeps the sums of an aggregation group with a pool of slots. SwitchProtocol makes
// them for each switch of a tree. A protocol of one's own derives from both (docs/how-to/extend.md).
#pragma once

#include <cstdint>
#include <memory>

namespace netsim {

// Returns the value of a packet, which switches add up in place of the data. `keys` is the key of the member,
// or the sum of the keys of all members whose packets are added. The second factor is odd, so the value
// determines the keys.
inline std::uint32_t aggregation_value(std::uint32_t keys, std::uint32_t psn) {
  return keys * (psn * 0x9e3779b2U + 1U);
}

// A packet of an aggregation group at a switch, or a sum in its place.
struct Addend {
  std::uint32_t psn = 0;
  std::uint32_t value = 0;
  std::uint32_t bytes = 0;  // payload and headers
};

class SwitchSums {
 public:
  enum class Arrival : std::uint8_t {
    waits,      // the packet is added, and the sum waits for others
    completes,  // the packet is added as the last one of its sum
    absorbed,   // the packet came again, and its sum still waits for others
    repeats,    // the packet came again, and its sum is complete
    unfinished  // the packet is kept or not, and a sum that lacks packets of members goes on in its place
  };
  virtual ~SwitchSums() = default;
  // Handles a packet of a member. Unless it waits or is absorbed, `addend` is replaced by what goes on.
  virtual Arrival add(std::uint32_t member, Addend& addend) = 0;
};

class SwitchProtocol {
 public:
  // An aggregation group at a switch.
  struct Group {
    std::uint32_t slots = 0;    // a power of two
    std::uint32_t members = 0;  // whose packets are added up: hosts, or switches below
    std::uint32_t keys = 0;     // sum of the keys of all hosts below (aggregation_value)
  };
  virtual ~SwitchProtocol() = default;
  // Returns the number of sums that a switch keeps for a pool of so many slots. They take its memory.
  virtual std::uint32_t kept(std::uint32_t slots) const = 0;
  // Returns the empty sums of a group.
  virtual std::unique_ptr<SwitchSums> sums(const Group& group) const = 0;
  // Returns whether unfinished sums leave switches. Hosts then add up what comes for a packet, and a packet
  // that is lost is not sent again but ends the run.
  virtual bool leaves_unfinished() const { return false; }
};

}  // namespace netsim
