// Named counter-based random streams (law 4).
//
// A stream is a pure function of (seed, name, counter). No state is shared, so adding a component or a thread
// does not change the draws of others. The distributions use + - * / and sqrt only. The standard library's
// differ between implementations, and libm's log, exp and pow differ between CPUs.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/core/units.h"

namespace netsim {

// Mixes 64 bits bijectively (splitmix64's finalizer; Steele, Lea, Flood, OOPSLA 2014).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

constexpr std::uint64_t hash_combine(std::uint64_t a, std::uint64_t b) {
  return mix64(a * 0x9e3779b97f4a7c15ULL + b + 0x632be59bd9b4e019ULL);
}

// Returns the FNV-1a hash of the bytes, mixed.
constexpr std::uint64_t hash_name(std::string_view name) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mix64(h);
}

class RandomStream {
 public:
  constexpr RandomStream() = default;
  constexpr RandomStream(std::uint64_t seed, std::string_view name)
      : key_(hash_combine(mix64(seed + 0x9e3779b97f4a7c15ULL), hash_name(name))) {}
  constexpr RandomStream(std::uint64_t seed, std::string_view name, std::uint64_t index)
      : key_(hash_combine(RandomStream(seed, name).key_, index)) {}

  constexpr std::uint64_t bits() { return mix64(key_ + 0x9e3779b97f4a7c15ULL * ++counter_); }
  // Draws uniformly from [0, n), n > 0, by a 128-bit multiply-shift, whose bias is at most n / 2^64.
  constexpr std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<UInt128>(bits()) * n) >> 64);
  }
  // Draws uniformly from [0, 1) with 53 bits.
  constexpr double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }
  // Draws from the exponential distribution with the given mean, > 0.
  double exponential(double mean);
  std::uint64_t key() const { return key_; }

 private:
  std::uint64_t key_ = 0;
  std::uint64_t counter_ = 0;
};

// Returns the natural logarithm of x > 0 with the same bits on every machine and a relative error below
// 1e-14.
double portable_log(double x);

}  // namespace netsim
