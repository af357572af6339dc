// MemoryLedger: the memory of a job's ranks while it runs: what is allocated and released is told as tasks
// begin and end, in order of time, and of each rank its most is kept, with the moment and what it was made
// of.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/units.h"
#include "sim/workload/memory_plan.h"

namespace netsim {

// Of one rank, after a change.
struct MemoryRecord {
  std::uint32_t job = 0;
  std::uint32_t rank = 0;
  Time time = 0;
  MemoryUse use;
};

class MemoryLedger {
 public:
  struct Rank {
    MemoryUse now, peak;
    Time peak_time = 0;   // when it was reached first
    Bytes host_peak = 0;  // the most in its host's memory, at any time
  };

  // `plan` outlives the ledger.
  MemoryLedger(const MemoryPlan& plan, std::uint32_t ranks);

  // What the ranks have all the time is there from `begin` on.
  void open(Time begin);
  // Of one rank in order of time. False where the task changes nothing.
  bool apply(std::uint32_t rank, const Task& task, bool begins, Time now);

  const Rank& of(std::uint32_t rank) const { return ranks_[rank]; }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(ranks_.size()); }
  // The first of those with the largest peak.
  std::uint32_t fullest() const;
  // Of the first ranks of roles: those whose configuration is worth a table, because the others' are alike.
  bool is_first_of_role(std::uint32_t rank) const { return first_of_role_[rank]; }

 private:
  const MemoryPlan& plan_;
  std::vector<Rank> ranks_;
  std::vector<bool> first_of_role_;
};

}  // namespace netsim
