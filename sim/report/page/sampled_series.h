// SampledSeries: the samples of a quantity by name, for the curves of report.html. Its memory is bounded by
// the number of series and of points, whatever the length of the run is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

class SampledSeries {
 public:
  static constexpr std::size_t kMostSeries = 1024;  // series that are kept, those that come first
  static constexpr std::size_t kMostPoints = 400;   // of a series

  // Point: the largest value of the intervals that end in a bucket of time, and the end of the bucket. It
  // holds from the time of the point before it.
  struct Point {
    Time time = 0;
    double value = 0;
  };
  struct Series {
    std::string name;
    double largest = 0;
    // The first point is 0 at time 0. A gap in the samples, in which the quantity is 0, is a point of value 0
    // at its end. Such a point also follows the last sample.
    std::vector<Point> points;
  };

  // Adds a sample of the interval that ends at `time`. The samples of a name come in order of time.
  void add(std::string_view name, Time time, Time interval, double value);
  // Returns the `most` series with the largest values, the largest first.
  std::vector<Series> largest(std::size_t most) const;
  std::size_t kept() const { return series_.size(); }
  // Returns whether samples of further names came, which were not kept.
  bool cut() const { return cut_; }

 private:
  struct Kept {
    Time width = 0;  // of a bucket
    double largest = 0;
    std::vector<std::pair<std::int64_t, double>> buckets;  // number of the bucket, largest value in it
  };
  static void widen(Kept& series);

  std::map<std::string, Kept, std::less<>> series_;
  bool cut_ = false;
};

}  // namespace netsim
