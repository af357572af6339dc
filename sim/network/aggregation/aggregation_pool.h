// AggregationPool: a pool of slots in the switches of an all-reduce tree, and how its members use it
// (slot_pool.h). A packet that is lost on a link is sent again.
#pragma once

#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

struct AggregationPool {
  std::uint32_t slots = 0;  // a power of two; 0: no pool, nothing is sent again and sums complete in order
  Bytes payload = 0;        // bytes of data of a packet
  Bytes header = 0;         // bytes of headers of a packet
  Time timeout = 0;         // time until a packet without its sum is sent again
  // The timeout doubles after so many timeouts of a member. It is the first one again when a message begins
  // with nothing in flight. 0: it stays as it is.
  std::uint32_t timeouts_to_double = 0;
};

}  // namespace netsim
