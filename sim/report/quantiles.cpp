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

std::size_t Quantiles::bins() { return bin(INT64_MAX) + 1; }

void Quantiles::add(std::int64_t value) {
  NETSIM_CHECK(value >= 0, "negative value in a distribution");
  ++count_;
  sum_ += static_cast<std::uint64_t>(value);
  maximum_ = std::max(maximum_, value);
  if (histogram_.empty() && values_.size() == kExact) {
    std::vector<std::uint64_t> histogram(bins());
    add_to(histogram);
    histogram_.swap(histogram);
    values_ = {};
  }
  if (histogram_.empty()) {
    values_.add(value);
  } else {
    ++histogram_[bin(static_cast<std::uint64_t>(value))];
  }
}

void Quantiles::add_to(std::vector<std::uint64_t>& histogram) const {
  for (std::size_t i = 0; i < histogram_.size(); ++i) histogram[i] += histogram_[i];
  values_.for_each([&](std::int64_t value) { ++histogram[bin(static_cast<std::uint64_t>(value))]; });
}

double Quantiles::mean() const { return TogetherQuantiles({this, 1}).mean(); }
std::int64_t Quantiles::quantile(std::uint64_t percent) const {
  return TogetherQuantiles({this, 1}).quantile(percent);
}

std::uint64_t TogetherQuantiles::count() const {
  std::uint64_t count = 0;
  for (const Quantiles& part : parts_) count += part.count_;
  return count;
}

double TogetherQuantiles::mean() const {
  UInt128 sum = 0;
  for (const Quantiles& part : parts_) sum += part.sum_;
  return count() == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count());
}

std::int64_t TogetherQuantiles::quantile(std::uint64_t percent) const {
  if (count() == 0) return 0;
  const std::uint64_t rank = std::max<std::uint64_t>((count() * percent + 99) / 100, 1);
  if (count() <= Quantiles::kExact) {
    std::vector<const ValueList*> values;
    for (const Quantiles& part : parts_) values.push_back(&part.values_);
    return ValueList::smallest(values, rank);
  }
  std::vector<std::uint64_t> histogram(Quantiles::bins());
  std::int64_t maximum = 0;
  for (const Quantiles& part : parts_) {
    part.add_to(histogram);
    maximum = std::max(maximum, part.maximum_);
  }
  std::uint64_t seen = 0;
  std::size_t at = 0;
  while ((seen += histogram[at]) < rank) ++at;
  return std::min(static_cast<std::int64_t>(Quantiles::bin_end(at)), maximum);
}

}  // namespace netsim
