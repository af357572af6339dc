// Fingerprint: a sum of 64-bit hashes that does not depend on their order. Tables can therefore be streamed,
// and threads can add their own sums.
#pragma once

#include <cstdint>
#include <string>

#include "sim/core/random.h"

namespace netsim {

class Fingerprint {
 public:
  void add(std::uint64_t hash) { sum_ += hash; }
  void add(std::uint64_t a, std::uint64_t b, std::uint64_t c) { sum_ += hash_combine(hash_combine(a, b), c); }
  std::uint64_t value() const { return sum_; }
  std::string hex() const;  // 16 lower-case hexadecimal digits

 private:
  std::uint64_t sum_ = 0;
};

}  // namespace netsim
