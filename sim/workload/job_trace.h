// Job traces: a CSV table of the jobs that were submitted to a cluster, a line for each.
//
//   submitted,gpus,duration,iterations,workload,vc,weight,deadline,name
//   0 s,8,3600 s,,,research,1,,first
//   90 s,4,,1000,resnet.yaml,,2,7200 s,second
//
// The columns may be in any order. `submitted` and `gpus` are required, and each job has a `duration` or a
// `workload`. A time without a unit in its cell has it in the name of the column: submitted_s, duration_ms.
// - A job without a workload keeps its GPUs busy for its duration. `iterations` cuts that into equal parts,
//   or else the key `iteration` of the list does.
// - `workload` is a file, found as those of a list of jobs are, with so many ranks as `gpus` says.
//   `iterations` replaces those of a YAML description. `duration` is then only what job schedulers expect.
// - `deadline` counts from the begin of the run, as `submitted` does.
#pragma once

#include <vector>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/workload/workload.h"

namespace netsim {

// Reads the trace that `node` names: {trace: FILE, iteration: TIME, first: NUMBER}.
std::vector<JobDescription> read_job_trace(const ConfigNode& node, const WorkloadContext& context);
// Returns the keys of that map, for the schema.
const ParameterTable& job_trace_table();

}  // namespace netsim
