// Reliability: a queue pair's reaction to packets that are lost or arrive out of order. The component is
// compiled to plain data, on which sender and receiver branch.
#pragma once

#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

struct ReliabilityPlan {
  // False: the receiver accepts packets in order only, and a gap makes the sender go back. True: the receiver
  // keeps packets that arrive out of order, and the sender repeats only missing ones.
  bool selective = false;
  // Not selective: whether the receiver repeats a NACK. It does when sequence numbers that do not rise show
  // that the sender has restarted and lost the expected packet again.
  bool repeat_nack = false;
  // Selective: whether packets that arrived out of order still count as in flight.
  bool cumulative = false;
  Time timeout = 0;               // 0: the transport's retransmission_timeout
  Time low_timeout = 0;           // timeout while at most low_packets are in flight; 0: none
  std::uint32_t low_packets = 0;  // see low_timeout
  std::uint32_t retries = 0;      // timeouts in a row before the queue pair fails; set by the transport
  // Least time before the queue pair fails: as long as the transport's own timeouts take together.
  Time patience = 0;
  double bdp_cap = 0;  // most bandwidth-delay products in flight; 0: no limit
  // A packet counts as lost when one that was sent this many packets later has arrived.
  std::uint32_t reorder_tolerance = 0;
};

// Returns a timeout that follows `timeouts` others in a row. Each is `factor` times as long as the one
// before, until they exceed 100 s.
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
