// Units: time, sizes and rates are integers everywhere (law 1).
//
// Time is integer picoseconds since the start of the simulation (int64: 106 days). Sizes are bytes, rates are
// bit/s. No floating point ever enters a time without being rounded to an integer at a named place.
#pragma once

#include <cstdint>

namespace netsim {

using Time = std::int64_t;     // picoseconds
using Bytes = std::int64_t;    // bytes
using BitRate = std::int64_t;  // bit/s

// 128-bit integers, for products of these types that are divided again. They are a compiler extension.
__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

inline constexpr Time kPicosecond = 1;
inline constexpr Time kNanosecond = 1'000;
inline constexpr Time kMicrosecond = 1'000'000;
inline constexpr Time kMillisecond = 1'000'000'000;
inline constexpr Time kSecond = 1'000'000'000'000;
inline constexpr Time kNever = INT64_MAX;

inline constexpr Bytes kKilobyte = 1'000, kMegabyte = 1'000'000, kGigabyte = 1'000'000'000;
inline constexpr Bytes kKibibyte = 1 << 10, kMebibyte = 1 << 20, kGibibyte = 1 << 30;
inline constexpr BitRate kMbps = 1'000'000, kGbps = 1'000'000'000;

// Returns ceil(bytes * 8 * 10^12 / rate), the time in ps that `bytes` occupy a link of `rate`. It is at most
// 1 ps too long, never too short. bytes >= 0, rate > 0.
constexpr Time transmission_time(Bytes bytes, BitRate rate) {
  constexpr std::int64_t kPicosecondBits = 8 * kSecond;
  if (bytes <= INT64_MAX / kPicosecondBits) {
    // Unsigned integers, because the sum below may exceed the range of signed ones.
    const auto bits = static_cast<std::uint64_t>(bytes * kPicosecondBits),
               by = static_cast<std::uint64_t>(rate);
    return static_cast<Time>((bits + by - 1) / by);
  }
  return static_cast<Time>(
      (static_cast<UInt128>(bytes) * static_cast<UInt128>(kPicosecondBits) + static_cast<UInt128>(rate) - 1) /
      static_cast<UInt128>(rate));
}

// Returns the double nearest to the time in seconds. It divides, because 1e-12 is not a double.
constexpr double to_seconds(Time time) { return static_cast<double>(time) / 1e12; }

}  // namespace netsim
