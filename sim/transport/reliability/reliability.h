// Reliability: what a queue pair does about packets that do not arrive, or not in order. A component that is
// compiled to plain data: sender and receiver branch on it.
#pragma once

#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

struct ReliabilityPlan {
  // false: the receiver takes packets in order only, a gap makes the sender go back. true: the receiver keeps
  // what comes out of order, and the sender repeats what is missing.
  bool selective = false;
  // Not selective: whether the receiver sends a NACK again where packets that do not rise tell that the
  // sender has started again and lost the expected packet once more.
  bool repeat_nack = false;
  // Selective: whether what arrived out of order still counts as in flight.
  bool cumulative = false;
  Time timeout = 0;               // 0: the transport's retransmission_timeout
  Time low_timeout = 0;           // 0: none; while no more than low_packets are in flight
  std::uint32_t low_packets = 0;  // see low_timeout
  std::uint32_t retries = 0;      // the transport's: timeouts in a row, then it gives up,
  Time patience = 0;              // but not before as much time has gone as those of the transport take
  double bdp_cap = 0;             // at most so many bandwidth-delay products in flight; 0: no limit
  std::uint32_t reorder_tolerance =
      0;  // a packet counts as lost when one that much later has arrived before it
};

// A timeout that follows `timeouts` others in a row: each is `factor` times as long as the one before, until
// they are longer than 100 s.
inline Time backed_off(Time wait, std::int64_t factor, std::uint32_t timeouts) {
  for (; timeouts > 0 && factor > 1 && wait < 100 * kSecond; --timeouts) wait *= factor;
  return wait;
}

class Reliability {
 public:
  static constexpr const char* kComponentKind = "reliability";
  virtual ~Reliability() = default;
  virtual ReliabilityPlan compile() const = 0;
};

}  // namespace netsim
