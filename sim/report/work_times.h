// WorkTimes: the times of computations that nothing slows down, for traces of a run. The cluster of a replay
// slows them down again: by stragglers, jitter, other tasks on the GPU and communication.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "sim/jobs/job.h"
#include "sim/report/run_view.h"

namespace netsim {

class WorkTimes {
 public:
  // `run` must outlive the object.
  WorkTimes(const RunView& run, JobId job) : run_(run), job_(job) {}
  // Returns the time of a computation of the job, or its recorded time where that is not known.
  Time of(const TaskRecord& record);

 private:
  const RunView& run_;
  JobId job_;
  std::map<std::pair<const ComputeModel*, std::uint32_t>, std::optional<Time>> times_;  // never iterated
};

}  // namespace netsim
