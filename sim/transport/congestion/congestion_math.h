// What congestion controls have in common: decisions are computed in doubles and handed over as integers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/core/units.h"
#include "sim/transport/congestion/congestion_control.h"

namespace netsim {

// The queue pair's bytes as the control's own struct: a trivial one, zeroed before start().
template <class State>
State& state_of(CongestionContext& c) {
  static_assert(sizeof(State) <= kMaxCongestionStateBytes && alignof(State) <= 16);
  return *reinterpret_cast<State*>(c.state);
}

// Packet a is behind packet b; right across the wrap at 2^32.
constexpr bool after(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) > 0; }

// The nearest integer rate in 1 .. line.
inline BitRate to_rate(double rate, BitRate line) {
  if (rate >= static_cast<double>(line)) return line;
  return std::clamp<BitRate>(static_cast<BitRate>(rate + 0.5), 1, line);
}

// A window in whole bytes, rounded down; at least 1, which lets one packet out.
inline Bytes to_window(double bytes) {
  constexpr double kLargest = 9e18;
  return bytes >= kLargest ? kNoWindow : std::max<Bytes>(1, static_cast<Bytes>(bytes));
}

// What flows at `rate` bit/s in `time`, in bytes.
inline double bytes_in(double rate, Time time) { return rate * static_cast<double>(time) / 8e12; }

// x^n by squaring: the same bits on every machine.
inline double power(double x, std::int64_t n) {
  double result = 1;
  for (; n > 0; n >>= 1, x *= x) {
    if ((n & 1) != 0) result *= x;
  }
  return result;
}

}  // namespace netsim
