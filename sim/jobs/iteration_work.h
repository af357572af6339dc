// Finds out how much a job computes in an iteration: from its workload, or from what it has done.
#pragma once

#include <optional>

#include "sim/compute/compute_times.h"
#include "sim/jobs/job.h"
#include "sim/scheduling/job_facts.h"
#include "sim/workload/task_source.h"

namespace netsim {

// Returns the work of the first iteration by the tasks of the workload. Returns nothing where the source does
// not know its tasks beforehand, or where they are too many for a JobProfile.
std::optional<IterationWork> planned_work(const TaskSource& source, const ComputeTimes& times);
// Returns the means of the iterations that have ended, or zeros before the first end. It takes the time in
// which a rank communicates beside its computation as the end of the computation. `offset` is therefore too
// late where communication ends earlier.
IterationWork measured_work(const Job& job, Time now);

}  // namespace netsim
