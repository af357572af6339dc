// PoolTimeout: the timeout of a member of an aggregation group with a pool of slots, which becomes longer
// (AggregationPool::timeouts_to_double).
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/core/units.h"
#include "sim/network/aggregation/aggregation_pool.h"

namespace netsim {

class PoolTimeout {
 public:
  explicit PoolTimeout(const AggregationPool& pool)
      : first_(pool.timeout), to_double_(pool.timeouts_to_double), wait_(first_) {}

  // Returns the time until a packet that is sent now must be sent again.
  Time wait() const { return wait_; }
  // Called when a message begins with nothing in flight.
  void begin_anew() {
    wait_ = first_;
    since_doubled_ = 0;
  }
  void timed_out() {
    constexpr Time kLongest = 360'000 * kSecond;  // so that times do not overflow
    ++in_a_row_;
    if (++since_doubled_ != to_double_) return;
    since_doubled_ = 0;
    wait_ = std::min(2 * wait_, std::max(kLongest, wait_));
  }
  // Called when a sum has arrived.
  void answered() { in_a_row_ = 0; }
  // Returns the number of timeouts since the last sum.
  std::uint64_t in_a_row() const { return in_a_row_; }

 private:
  Time first_;
  std::uint32_t to_double_;
  Time wait_;
  std::uint32_t since_doubled_ = 0;
  std::uint64_t in_a_row_ = 0;
};

}  // namespace netsim
