// Functions shared by congestion controls. They decide in doubles and return integers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/core/units.h"
#include "sim/transport/congestion/congestion_control.h"

namespace netsim {

// Returns the queue pair's state as the control's own trivial struct. It is zeroed before start().
template <class State>
State& state_of(CongestionContext& c) {
  static_assert(sizeof(State) <= kMaxCongestionStateBytes && alignof(State) <= 16);
  return *reinterpret_cast<State*>(c.state);
}

// Returns whether packet a follows packet b, also across the wrap at 2^32.
constexpr bool after(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) > 0; }

// Returns the nearest integer rate in 1 .. line, bit/s.
inline BitRate to_rate(double rate, BitRate line) {
  if (rate >= static_cast<double>(line)) return line;
  return std::clamp<BitRate>(static_cast<BitRate>(rate + 0.5), 1, line);
}

// Returns a window in whole bytes, rounded down. It is at least 1, which lets one packet be sent.
inline Bytes to_window(double bytes) {
  constexpr double kLargest = 9e18;
  return bytes >= kLargest ? kNoWindow : std::max<Bytes>(1, static_cast<Bytes>(bytes));
}

// Returns the bytes sent at `rate` bit/s in `time`.
inline double bytes_in(double rate, Time time) { return rate * static_cast<double>(time) / 8e12; }

// Returns x^n by squaring, with the same bits on every machine.
inline double power(double x, std::int64_t n) {
  double result = 1;
  for (; n > 0; n >>= 1, x *= x) {
    if ((n & 1) != 0) result *= x;
  }
  return result;
}

}  // namespace netsim
