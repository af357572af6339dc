// SizeDistribution: flow sizes drawn from a published cumulative distribution.
#pragma once

#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/units.h"

namespace netsim {

// SizeDistribution: points (size, percent of the flows that are at most this large), linear between them.
// Flows below the first percentage have the first size. So a first percentage of 0 says that sizes begin
// there, and a single point of 100 that all are equal. Sizes rise strictly, percentages do not fall, and the
// last is 100.
class SizeDistribution {
 public:
  struct Point {
    double bytes = 0, percent = 0;
    Place place;
  };
  // Throws InputError at the point that breaks the rules above. `whole` is the place of the list.
  SizeDistribution(std::vector<Point> points, const Place& whole);

  // Returns the size below which the share `u`, in [0, 1), of the flows lies, in whole bytes, at least 1.
  Bytes quantile(double u) const;
  // Returns the mean of the continuous distribution, in bytes.
  double mean() const;

 private:
  std::vector<Point> points_;
};

// Reads a distribution. If `node` is text, it is the name of a file of lines `bytes percent` (# comments), as
// of the HPCC and DCTCP traffic generators. Otherwise it is a list [[bytes, percent], ...], where bytes may
// have a unit.
SizeDistribution read_size_distribution(const ConfigNode& node);

}  // namespace netsim
