// Lists of jobs: reads the key `jobs` of a file, which is one of three things.
//
//   jobs: [{name, workload, arrival, ...}, ...]                 a list
//   jobs: {trace: jobs.csv, iteration: 60 s}                    a table of submissions (job_trace.h)
//   jobs: {poisson: 100, gap: 10 s, of: [{name, workload}]}     random arrivals
//
// Arrivals of a Poisson process have exponential gaps. Each job is one of `of`, drawn by `share`. The draws
// come from the run's seed and do not depend on anything else.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/workload/workload.h"

namespace netsim {

inline constexpr std::int64_t kMostJobs = 1'000'000;

// Reads the jobs of `root`, a map with the key `jobs`, of the file `path`.
std::vector<JobDescription> read_jobs(const ConfigNode& root, const WorkloadContext& context,
                                      const std::string& path);

// Returns a workload that is written in place, or reads the one whose input is named. Sets `file` to the
// input that is read.
std::unique_ptr<TaskSource> read_job_source(const ConfigNode& node, const WorkloadContext& context,
                                            std::string& file);

// Return the keys of a job in a list, besides `workload`, and of random arrivals, for the schema.
const ParameterTable& listed_job_table();
const ParameterTable& random_jobs_table();

// Returns why a source cannot be made when its job begins, or "" if it can.
std::string refuse_deferred(const TaskSource& source);

}  // namespace netsim
