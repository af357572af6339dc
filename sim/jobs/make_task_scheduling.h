// Makes the task scheduling of a job from the configuration.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/compute/compute_times.h"
#include "sim/core/ids.h"
#include "sim/jobs/task_scheduling.h"
#include "sim/scheduling/scheduling_parameters.h"
#include "sim/scheduling/task/job_profile.h"
#include "sim/topology/topology.h"
#include "sim/workload/workload.h"

namespace netsim {

// Returns how the communications of the job are launched, or null where the configuration names no task
// scheduler. `times` are those of the job, and `gpus` the GPU of each rank.
//
// Throws ConfigError for a scheduler that needs a profile of a job whose workload cannot give one. Throws
// InputError where tasks would wait for one another in a circle (launch_check.h).
std::shared_ptr<const TaskScheduling> make_task_scheduling(const SchedulingParameters& parameters,
                                                           const JobDescription& job,
                                                           const ComputeTimes& times, const Cluster& cluster,
                                                           const std::vector<GpuId>& gpus);

// Returns the profile of the job on these GPUs, or nothing where its workload cannot give one. Communications
// take the time of their bytes on the links of a GPU.
std::optional<JobProfile> profile_on(const JobDescription& job, const ComputeTimes& times,
                                     const Cluster& cluster, const std::vector<GpuId>& gpus);

}  // namespace netsim
