// RankLedger: the statistics of one rank. What computes and what is in flight is told as it begins and ends,
// in order of time, and is folded into sums at once: the statistics of a rank take the same few hundred bytes
// after any number of tasks.
//
// Time with communications of several kinds exposed at once is kept per set of kinds and split when it is
// asked for, so the split does not depend on how often something began or ended meanwhile.
#pragma once

#include <array>
#include <cstdint>

#include "sim/core/units.h"
#include "sim/jobs/job.h"
#include "sim/workload/task.h"

namespace netsim {

class RankLedger {
 public:
  // The rank's time starts here; nothing may be told before.
  void open(Time begin) { begin_ = last_ = begin; }

  void compute_begins(Time now);
  void compute_ends(Time now);
  void communication_begins(Stream kind, Time now);
  void communication_ends(Stream kind, Time now);
  // Nothing runs from now on, and what is told later does not count.
  void halt(Time now);

  // Books over [begin, until]; what has not ended counts up to `until`, which is not before the last thing
  // told.
  RankTimes times(Time until) const;
  // The last time that anything was told.
  Time told() const { return last_; }

 private:
  static constexpr std::size_t kSets = std::size_t{1} << kStreams;
  struct Sums {
    Time compute = 0;
    Time communication = 0;
    std::array<Time, kSets> exposed{};  // by the set of kinds exposed together, bit = Stream
  };

  void advance(Time now);
  void add(Sums& sums, Time duration) const;

  Time begin_ = 0;
  Time last_ = 0;  // sums_ cover [begin_, last_]
  Sums sums_;
  bool halted_ = false;
  std::uint32_t computing_ = 0;
  std::uint32_t in_flight_kinds_ = 0;  // bit = Stream with in_flight_ > 0
  std::array<std::uint32_t, kStreams> in_flight_{};
};

}  // namespace netsim
