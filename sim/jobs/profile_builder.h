// Makes the JobProfile of a workload, with which task schedulers plan.
#pragma once

#include <functional>
#include <optional>

#include "sim/compute/compute_times.h"
#include "sim/core/errors.h"
#include "sim/scheduling/task/job_profile.h"
#include "sim/workload/task_source.h"

namespace netsim {

// Estimates the time of a communication without contention and without its start-up, at least 0. It is called
// for the lowest rank's task of a collective and for the send of a message. It is called for copies between a
// GPU and its host too.
using CommunicationEstimate = std::function<Time(RankId rank, const Task& task)>;

// Returns the profile of the first iteration, or nothing where the source has no task graph. The
// communications are numbered in the order of ranks and of their programs. A request for circuits is a task
// of its own at each rank, so paths do not lead through it to other ranks.
//
// Throws InputError with `place` for more than JobProfile::kMostTasks tasks, and for tasks that wait for one
// another in a circle.
std::optional<JobProfile> build_job_profile(const TaskSource& source, const ComputeTimes& times,
                                            const CommunicationEstimate& estimate, const Place& place);

}  // namespace netsim
