// CutCosts: counts the start-ups of operations that a strategy or a task scheduler has cut into pieces. A job
// whose pieces need more time to start than its communication hides behind computation has a Note.
//
// The start-up of a collective is the time from a rank's start to its first step. Latencies of later steps
// and messages do not count, so the real cost is higher. The start-up of a kernel is the time of one without
// work. Slices of one kernel have none.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/collectives/execution/library_choice.h"
#include "sim/core/ids.h"
#include "sim/core/units.h"
#include "sim/jobs/job.h"
#include "sim/jobs/job_set.h"
#include "sim/report/results.h"
#include "sim/workload/program/program.h"

namespace netsim {

class CutCosts {
 public:
  explicit CutCosts(const JobSet& jobs) : jobs_(jobs) {}
  void add(const TaskRecord& task);
  void add(const CommunicationRecord& communication, const LibraryChoice& choice);
  // Returns the costs, without what is hidden. `kernel` is the start-up of a kernel on the job's GPUs.
  CutSummary summary(JobId job, Time kernel) const;

 private:
  struct Sum {
    std::uint64_t kernels = 0;  // launched for pieces
    Time startups = 0;          // of collectives that are pieces, summed over ranks
  };
  struct JobSums {
    const Program* program = nullptr;  // null: no operation is cut
    std::map<std::uint32_t, Sum> by_name;
    Time of_parts = 0;  // added by a task scheduler
  };
  JobSums& sums_of(JobId job);
  static const CutOperations* find(const JobSums& sums, std::uint32_t name);

  const JobSet& jobs_;
  std::vector<JobSums> sums_;  // by job, of those with records
};

}  // namespace netsim
