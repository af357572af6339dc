// The latest time that a simulation reaches, and bounded durations.
//
// The engine executes nothing later than kLastTime and ends the run with an error instead. A time in a file
// is at most 10^6 s; a time computed from several is bounded by kTooLong. The sum of a simulated time, a
// computed duration and a file's value therefore does not overflow and needs no check.
#pragma once

#include "sim/core/units.h"

namespace netsim {

// 40 days, which is below 2^62 - 10^18 ps.
inline constexpr Time kLastTime = Time{40} * 86'400 * kSecond;
// Later than the end of any run. Its sum with kLastTime and 10^6 s is a Time.
inline constexpr Time kTooLong = Time{1} << 62;
static_assert(kLastTime + 1'000'000 * kSecond < INT64_MAX - kTooLong);

// Return the smaller of `picoseconds`, which must not be negative, and kTooLong. A double is truncated to an
// integer.
constexpr Time bounded_time(Int128 picoseconds) {
  return picoseconds < kTooLong ? static_cast<Time>(picoseconds) : kTooLong;
}
constexpr Time bounded_time(double picoseconds) {
  return picoseconds < static_cast<double>(kTooLong) ? static_cast<Time>(picoseconds) : kTooLong;
}
// Returns the smaller of kTooLong and the sum of two durations, each at most kTooLong.
constexpr Time bounded_sum(Time a, Time b) { return a < kTooLong - b ? a + b : kTooLong; }

}  // namespace netsim
