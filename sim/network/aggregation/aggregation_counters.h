// AggregationCounters: what a switch has added up, all aggregation groups together.
#pragma once

#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

struct AggregationCounters {
  std::uint64_t packets = 0;  // packets that were added to a sum
  Bytes bytes = 0;            // bytes of these packets, headers included
  std::uint64_t sums = 0;     // sums that became complete
  // Packets that came again to a pool of slots, and were not added. `repeated`: their sum was complete, and
  // is sent again. `discarded`: it still waited for other members.
  std::uint64_t repeated = 0, discarded = 0;
  std::uint64_t unfinished = 0;  // sums that left without the packets of all members
  // Packets of best-effort groups that went on to the parameter server. `collided`: there was no free
  // aggregator. `flushed`: they were sent again.
  std::uint64_t collided = 0, flushed = 0;

  AggregationCounters& operator+=(const AggregationCounters& other) {
    packets += other.packets;
    bytes += other.bytes;
    sums += other.sums;
    repeated += other.repeated;
    discarded += other.discarded;
    unfinished += other.unfinished;
    collided += other.collided;
    flushed += other.flushed;
    return *this;
  }
};

}  // namespace netsim
