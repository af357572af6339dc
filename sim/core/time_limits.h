// The latest time that a simulation reaches, and durations that are bounded for it.
//
// The engine executes nothing later than kLastTime and ends the run with an error instead. A value of a file
// is at most 10^6 s; what is computed from several is bounded by kTooLong. So the sum of a simulated
// time, a computed duration and a value of a file does not overflow and needs no check.
#pragma once

#include "sim/core/units.h"

namespace netsim {

// 40 days: below 2^62 - 10^18 ps.
inline constexpr Time kLastTime = Time{40} * 86'400 * kSecond;
// Later than any run; the sum of it, kLastTime and 10^6 s is a Time.
inline constexpr Time kTooLong = Time{1} << 62;
static_assert(kLastTime + 1'000'000 * kSecond < INT64_MAX - kTooLong);

// `picoseconds`, not negative, or kTooLong if that is less; a double is cut to a whole number.
constexpr Time bounded_time(Int128 picoseconds) {
  return picoseconds < kTooLong ? static_cast<Time>(picoseconds) : kTooLong;
}
constexpr Time bounded_time(double picoseconds) {
  return picoseconds < static_cast<double>(kTooLong) ? static_cast<Time>(picoseconds) : kTooLong;
}
// The sum of two durations, each at most kTooLong; kTooLong if that is less.
constexpr Time bounded_sum(Time a, Time b) { return a < kTooLong - b ? a + b : kTooLong; }

}  // namespace netsim
