// JobManager: decides where and when the jobs of a run run. It places their ranks on GPUs, starts them at
// their arrivals, and lets them continue after failures of hosts (recovery.h). All of it happens between
// events.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/compute/gpu_models.h"
#include "sim/compute/gpu_variation.h"
#include "sim/core/config.h"
#include "sim/core/engine.h"
#include "sim/jobs/job_set.h"
#include "sim/jobs/recovery.h"
#include "sim/topology/topology.h"
#include "sim/transport/circuit_control.h"
#include "sim/workload/workload.h"

namespace netsim {

class JobManager {
 public:
  // Environment: the parts of the run that the jobs use. They must outlive the manager.
  struct Environment {
    const ConfigNode& configuration;  // its sections `placement` and `gpus` are read
    Engine& engine;
    const Cluster& cluster;
    const GpuModels& models;
    JobSet& jobs;
    CircuitControl* circuits = nullptr;  // null: no optical circuits that jobs can request
    bool packet_network = true;          // false: the network is ideal
    std::uint64_t seed = 1;
  };
  // Places all jobs and adds them to Environment::jobs, in order. Throws ConfigError or InputError where
  // ranks do not fit on the cluster's GPUs or into their memory, or where the configuration is invalid.
  JobManager(const Environment& environment, std::vector<JobDescription> jobs);
  JobManager(const JobManager&) = delete;
  JobManager& operator=(const JobManager&) = delete;

  // Sets a callback for a job that is added during the run, the rest of a stopped one. It is called before
  // the job starts.
  void on_job_added(std::function<void(const JobDescription&)> callback) {
    on_job_added_ = std::move(callback);
  }
  // Begins the jobs that arrive at 0 and schedules the arrivals of the others.
  void begin();
  // Returns whether all jobs are done, the rests of stopped jobs included.
  bool done() const { return jobs_.done() && !recovery_->is_pending(); }
  // Returns whether a job will begin or restart later.
  bool is_pending() const;

  // Return the descriptions by number of the job.
  const std::vector<JobDescription>& descriptions() const { return descriptions_; }
  const Recovery& recovery() const { return *recovery_; }

 private:
  // GpuUse: by GPU, whether one job has it for itself, and whether several share it.
  struct GpuUse {
    std::vector<bool> taken, shared;
  };

  void connect_arrivals();
  void place(const JobDescription& job, GpuUse& use);
  void add(const JobDescription& job, std::vector<std::uint32_t> gpus);
  void add_rest(Recovery::Rest rest);
  void require_memory(const JobDescription& job, const std::vector<std::uint32_t>& gpus) const;
  void require_cpus(const JobDescription& job, const std::vector<std::uint32_t>& gpus) const;

  Environment environment_;
  JobSet& jobs_;
  std::vector<JobDescription> descriptions_;  // by job
  GpuVariation variation_;                    // from the section `gpus`, like `overcommit_memory_`
  bool overcommit_memory_ = false;
  std::vector<std::unique_ptr<ComputeTimes>> times_;  // by job
  std::unique_ptr<JournalReader> arrivals_;           // passes announced arrivals to the jobs
  std::unique_ptr<Recovery> recovery_;
  std::function<void(const JobDescription&)> on_job_added_;
};

}  // namespace netsim
