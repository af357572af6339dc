// Quantiles of a stream of integers: exact for up to 2^20 values; beyond that a histogram whose bins are at
// most 1/1024 of their values wide, so that memory stays bounded. Deterministic and blind to the order of the
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"
#include "sim/report/value_list.h"

namespace netsim {

class Quantiles {
 public:
  static constexpr std::size_t kExact = std::size_t{1} << 20;

  void add(std::int64_t value);  // >= 0
  std::uint64_t count() const { return count_; }
  double mean() const;  // of an exact sum; 0 of nothing
  std::int64_t maximum() const { return maximum_; }
  // Nearest-rank: the smallest value that at least `percent` % of the values do not exceed; 0 of nothing.
  // From the histogram: the largest value of that one's bin. 0 < percent <= 100.
  std::int64_t quantile(std::uint64_t percent) const;

 private:
  friend class TogetherQuantiles;
  static std::size_t bin(std::uint64_t value);
  static std::uint64_t bin_end(std::size_t bin);  // largest value in it
  void add_to(std::vector<std::uint64_t>& histogram) const;
  static std::size_t bins();

  std::uint64_t count_ = 0;
  UInt128 sum_ = 0;
  std::int64_t maximum_ = 0;
  ValueList values_;                      // until there are kExact
  std::vector<std::uint64_t> histogram_;  // then
};

// Several of them as if all values had been added to one.
class TogetherQuantiles {
 public:
  // The parts must outlive it.
  explicit TogetherQuantiles(std::span<const Quantiles> parts) : parts_(parts) {}
  std::uint64_t count() const;
  double mean() const;
  std::int64_t quantile(std::uint64_t percent) const;

 private:
  std::span<const Quantiles> parts_;
};

}  // namespace netsim
