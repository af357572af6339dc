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
  Time timeout = 0;               // 0: the transport's retransmission_timeout
  Time low_timeout = 0;           // 0: none; while no more than low_packets are in flight
  std::uint32_t low_packets = 0;  // see low_timeout
  std::uint32_t retries = 0;      // the transport's: timeouts in a row, then it gives up
  double bdp_cap = 0;             // at most so many bandwidth-delay products in flight; 0: no limit
  std::uint32_t reorder_tolerance =
      0;  // a packet counts as lost when one that much later has arrived before it
};

class Reliability {
 public:
  static constexpr const char* kComponentKind = "reliability";
  virtual ~Reliability() = default;
  virtual ReliabilityPlan compile() const = 0;
};

}  // namespace netsim
