// Checks before a run that the ranks of a job cannot wait for one another because of their task scheduler.
#pragma once

#include <memory>

#include "sim/core/errors.h"
#include "sim/jobs/task_scheduling.h"
#include "sim/workload/task_source.h"

namespace netsim {

// Returns whether check_launches() plays the job. It plays the tasks of one iteration of all ranks, so it
// leaves out large jobs.
bool is_checked(const TaskSource& source, const TaskScheduling& scheduling);

// Plays the first iteration of the source with the scheduler: as a job, on GPUs and a network that take no
// time. A message is sent as soon as it is launched, a collective when all members have launched it.
// Decisions arrive after the scheduling's latency.
//
// Throws InputError with `place` where tasks wait for one another in a circle. Does nothing for a source that
// has no task graph, and where each rank orders collectives for itself (TaskScheduling::agreed is not set). A
// scheduler that launches nothing makes no circle, so the run itself reports it.
void check_launches(const TaskSource& source, const std::shared_ptr<const TaskScheduling>& scheduling,
                    const Place& place);

}  // namespace netsim
