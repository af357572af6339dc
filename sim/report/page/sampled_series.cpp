#include "sim/report/page/sampled_series.h"

#include <algorithm>

namespace netsim {

void SampledSeries::add(std::string_view name, Time time, Time interval, double value) {
  auto found = series_.find(name);
  if (found == series_.end()) {
    if (series_.size() == kMostSeries) {
      cut_ = true;
      return;
    }
    found = series_.emplace(std::string(name), Kept{interval, 0, {}}).first;
  }
  Kept& series = found->second;
  series.largest = std::max(series.largest, value);
  const std::int64_t bucket = (time - 1) / series.width;
  if (!series.buckets.empty() && series.buckets.back().first == bucket) {
    series.buckets.back().second = std::max(series.buckets.back().second, value);
    return;
  }
  series.buckets.emplace_back(bucket, value);
  while (series.buckets.size() > kMostPoints) widen(series);
}

// Makes the buckets twice as wide.
void SampledSeries::widen(Kept& series) {
  series.width *= 2;
  std::size_t last = 0;
  for (std::size_t i = 0; i < series.buckets.size(); ++i) {
    const auto [bucket, value] = series.buckets[i];
    if (i > 0 && series.buckets[last].first == bucket / 2) {
      series.buckets[last].second = std::max(series.buckets[last].second, value);
    } else {
      if (i > 0) ++last;
      series.buckets[last] = {bucket / 2, value};
    }
  }
  series.buckets.resize(last + 1);
}

std::vector<SampledSeries::Series> SampledSeries::largest(std::size_t most) const {
  std::vector<const std::pair<const std::string, Kept>*> order;
  order.reserve(series_.size());
  for (const auto& entry : series_) {
    if (entry.second.largest > 0) order.push_back(&entry);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->second.largest > b->second.largest; });
  if (order.size() > most) order.resize(most);
  std::vector<Series> all;
  all.reserve(order.size());
  for (const auto* entry : order) {
    const auto& [name, kept] = *entry;
    Series series{name, kept.largest, {}};
    series.points.reserve(2 * kept.buckets.size() + 2);
    series.points.push_back({0, 0});
    std::int64_t next = 0;  // number of the first bucket without a point
    for (const auto& [bucket, value] : kept.buckets) {
      if (bucket > next) series.points.push_back({bucket * kept.width, 0});
      series.points.push_back({(bucket + 1) * kept.width, value});
      next = bucket + 1;
    }
    series.points.push_back({(next + 1) * kept.width, 0});
    all.push_back(std::move(series));
  }
  return all;
}

}  // namespace netsim
