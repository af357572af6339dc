// Named counter-based random streams (law 4).
//
// A stream is a pure function of (seed, name, counter): no state is shared, so adding a component or a thread
// does not change anybody else's draws. The distributions are our own, in + - * / and sqrt only, because the
// standard library's differ between implementations and libm's log, exp and pow differ between CPUs.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/core/units.h"

namespace netsim {

// A bijective 64-bit mixer (splitmix64's finalizer; Steele, Lea, Flood, OOPSLA 2014).
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

// FNV-1a over the bytes, then mixed.
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
  // Uniform in [0, n), n > 0, without modulo bias worth measuring (128-bit multiply-shift).
  constexpr std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<UInt128>(bits()) * n) >> 64);
  }
  // Uniform in [0, 1), 53 bits.
  constexpr double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }
  // Exponential with the given mean, > 0.
  double exponential(double mean);
  std::uint64_t key() const { return key_; }

 private:
  std::uint64_t key_ = 0;
  std::uint64_t counter_ = 0;
};

// Natural logarithm of x > 0 in our own arithmetic: same bits on every machine, relative error below 1e-14.
double portable_log(double x);

}  // namespace netsim
