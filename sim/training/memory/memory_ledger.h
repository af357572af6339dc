// MemoryLedger: the memory of a job's ranks while it runs. Allocations and releases are reported as tasks
// begin and end, in order of time. The ledger keeps each rank's peak, with its time and its composition.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/units.h"
#include "sim/workload/memory_plan.h"

namespace netsim {

// MemoryRecord: the memory of one rank after a change.
struct MemoryRecord {
  JobId job = 0;
  RankId rank = 0;
  Time time = 0;
  MemoryUse use;
};

class MemoryLedger {
 public:
  struct Rank {
    MemoryUse now, peak;
    Time peak_time = 0;   // time at which the peak was reached first
    Bytes host_peak = 0;  // the greatest use of its host's memory, at any time
  };

  // `plan` must outlive the ledger.
  MemoryLedger(const MemoryPlan& plan, std::uint32_t ranks);

  // Sets the time from which on the ranks hold the memory that they use throughout the job. It is the peak's
  // time until a larger use is reached.
  void open(Time begin);
  // Applies the changes of a task that begins or ends. Calls for one rank must be in order of time. Returns
  // false where the task changes nothing.
  bool apply(RankId rank, const Task& task, bool begins, Time now);

  const Rank& of(RankId rank) const { return ranks_[rank]; }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(ranks_.size()); }
  // Returns the rank with the largest peak, the first of several.
  std::uint32_t fullest() const;
  // Returns whether a rank is the first of a role. Only such ranks have records over time, because the other
  // ranks of the role are alike.
  bool is_first_of_role(RankId rank) const { return first_of_role_[rank]; }

 private:
  const MemoryPlan& plan_;
  std::vector<Rank> ranks_;
  std::vector<bool> first_of_role_;
};

}  // namespace netsim
