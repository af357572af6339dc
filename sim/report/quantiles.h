// Quantiles: quantiles of a stream of integers. They are exact for up to 2^20 values. Beyond that a histogram
// with bins at most 1/1024 as wide as their values bounds the memory. The result is deterministic and does
// not depend on the order of the values.
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
  double mean() const;  // from an exact sum; 0 without values
  std::int64_t maximum() const { return maximum_; }
  // Returns the nearest-rank quantile: the smallest value that at least `percent` % of the values do not
  // exceed. From the histogram it returns the largest value of the bin. Returns 0 without values; 0 < percent
  // <= 100.
  std::int64_t quantile(std::uint64_t percent) const;

 private:
  friend class TogetherQuantiles;
  static std::size_t bin(std::uint64_t value);
  static std::uint64_t bin_end(std::size_t bin);  // largest value in the bin
  void add_to(std::vector<std::uint64_t>& histogram) const;
  static std::size_t bins();

  std::uint64_t count_ = 0;
  UInt128 sum_ = 0;
  std::int64_t maximum_ = 0;
  ValueList values_;                      // used for up to kExact values
  std::vector<std::uint64_t> histogram_;  // used beyond that
};

// TogetherQuantiles: the quantiles of several streams as if all values had been added to one.
class TogetherQuantiles {
 public:
  // The parts must outlive the object.
  explicit TogetherQuantiles(std::span<const Quantiles> parts) : parts_(parts) {}
  std::uint64_t count() const;
  double mean() const;
  std::int64_t quantile(std::uint64_t percent) const;

 private:
  std::span<const Quantiles> parts_;
};

}  // namespace netsim
