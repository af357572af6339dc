#include "sim/report/quantiles.h"

#include <algorithm>
#include <bit>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// Values below 2^11 have bins of their own; every octave above has 2^10 bins.
constexpr std::uint32_t kOctaveBits = 10;
constexpr std::uint64_t kOctave = std::uint64_t{1} << kOctaveBits;

}  // namespace

std::size_t Quantiles::bin(std::uint64_t value) {
  const auto width = static_cast<std::uint32_t>(std::bit_width(value));
  if (width <= kOctaveBits + 1) return value;
  const std::uint32_t shift = width - (kOctaveBits + 1);
  return shift * kOctave + (value >> shift);
}

std::uint64_t Quantiles::bin_end(std::size_t bin) {
  if (bin < 2 * kOctave) return bin;
  const std::uint64_t shift = bin / kOctave - 1;
  return ((bin - shift * kOctave + 1) << shift) - 1;
}

void Quantiles::add(std::int64_t value) {
  NETSIM_CHECK(value >= 0, "negative value in a distribution");
  ++count_;
  sum_ += static_cast<std::uint64_t>(value);
  maximum_ = std::max(maximum_, value);
  if (histogram_.empty() && values_.size() == kExact) to_histogram();
  if (histogram_.empty()) {
    values_.push_back(value);
  } else {
    ++histogram_[bin(static_cast<std::uint64_t>(value))];
  }
}

void Quantiles::to_histogram() {
  histogram_.assign(bin(INT64_MAX) + 1, 0);
  for (const std::int64_t value : values_) ++histogram_[bin(static_cast<std::uint64_t>(value))];
  values_ = {};
}

double Quantiles::mean() const {
  return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

std::int64_t Quantiles::quantile(std::uint64_t percent) const {
  if (count_ == 0) return 0;
  const std::uint64_t rank = std::max<std::uint64_t>((count_ * percent + 99) / 100, 1);
  if (histogram_.empty()) {
    std::vector<std::int64_t> values = values_;
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(values.begin(), place, values.end());
    return *place;
  }
  std::uint64_t seen = 0;
  std::size_t at = 0;
  while ((seen += histogram_[at]) < rank) ++at;
  return std::min(static_cast<std::int64_t>(bin_end(at)), maximum_);
}

}  // namespace netsim
