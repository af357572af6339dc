// Fingerprints: order-independent sums of 64-bit hashes, so that tables can be streamed and threads can add
// theirs.
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
  std::string hex() const;  // 16 lower-case digits

 private:
  std::uint64_t sum_ = 0;
};

}  // namespace netsim
