// RankLedger: the statistics of one rank. It takes the begins and ends of tasks in order of time and adds
// them to sums at once. Therefore it needs the same few hundred bytes after any number of tasks.
//
// Time during which communications of several kinds are exposed together is kept per set of kinds. It is
// split when the times are read, so the split does not depend on the number of begins and ends.
#pragma once

#include <array>
#include <cstdint>

#include "sim/core/units.h"
#include "sim/jobs/job.h"
#include "sim/workload/task.h"

namespace netsim {

class RankLedger {
 public:
  // Starts the rank's time. Must be called before all others. `cut_streams` has a bit for each Stream that
  // RankTimes::hidden_of_cuts counts.
  void open(Time begin, std::uint32_t cut_streams = 0) {
    begin_ = last_ = begin;
    cut_streams_ = cut_streams;
  }

  void compute_begins(Time now);
  void compute_ends(Time now);
  void communication_begins(Stream kind, Time now);
  void communication_ends(Stream kind, Time now);
  // Ends all running work at `now`. Later calls have no effect.
  void halt(Time now);

  // Returns the times over [begin, until]. Work that has not ended counts up to `until`, which must not be
  // before told().
  RankTimes times(Time until) const;
  // Returns the time of the last call that changed the ledger.
  Time told() const { return last_; }

 private:
  static constexpr std::size_t kSets = std::size_t{1} << kStreams;
  struct Sums {
    Time compute = 0;
    Time communication = 0;
    Time hidden_of_cuts = 0;
    std::array<Time, kSets> exposed{};  // by set of kinds exposed together, bit = Stream
  };

  void advance(Time now);
  void add(Sums& sums, Time duration) const;

  Time begin_ = 0;
  Time last_ = 0;  // sums_ cover [begin_, last_]
  Sums sums_;
  bool halted_ = false;
  std::uint32_t computing_ = 0;
  std::uint32_t in_flight_kinds_ = 0;  // bit = Stream with in_flight_ > 0
  std::uint32_t cut_streams_ = 0;
  std::array<std::uint32_t, kStreams> in_flight_{};
};

}  // namespace netsim
