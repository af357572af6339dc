// Builds the Results of a run from its parts.
#pragma once

#include <string>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/compute/gpu_models.h"
#include "sim/core/config.h"
#include "sim/core/engine.h"
#include "sim/jobs/job_manager.h"
#include "sim/jobs/job_set.h"
#include "sim/report/cut_costs.h"
#include "sim/report/output_parameters.h"
#include "sim/report/recorder.h"
#include "sim/report/result_sinks.h"
#include "sim/report/results.h"
#include "sim/report/sampler.h"
#include "sim/scheduling/flow/scheduled_endpoint.h"
#include "sim/scheduling/flow/split_endpoint.h"
#include "sim/scheduling/scheduling_intervals.h"
#include "sim/topology/topology.h"
#include "sim/transport/packet_network.h"

namespace netsim {

// RunParts: the parts of a run that its results come from. All of it belongs to the caller.
struct RunParts {
  const ConfigNode& configuration;
  const std::vector<std::string>& notes;  // of the reader of the configuration
  const Cluster& cluster;
  const Engine& engine;
  const PacketNetwork* packets;                     // null: `network: ideal`
  const std::vector<TransportFigures>& transports;  // by number in Cluster::fabrics; empty if ideal
  const Executor& executor;
  const GpuModels& models;
  const JobSet& jobs;
  const JobManager& manager;
  const OutputParameters& output;
  const Recorder& recorder;
  const CutCosts& cuts;
  const Sampler* sampler;    // null: no samples
  const ResultSinks* sinks;  // null: no files
  const SchedulingIntervals& intervals;
  const ScheduledEndpoint* flows;  // null: the configuration names no flow scheduler
  const SplitEndpoint* splits;     // null: the configuration names no flow splitter
};

// Returns the results. `cut` is the time at which a run with the outcome `limit` was cut.
Results build_results(const RunParts& run, Outcome outcome, Time cut);

// Returns the figures of the first packet fabric, or default figures if there is none.
TransportFigures first_packet_transport(const Cluster& cluster,
                                        const std::vector<TransportFigures>& transports);

// Returns the largest planned use of memory of any role.
MemoryPeak planned_memory(const MemoryPlan& plan);

}  // namespace netsim
