// JobManager: decides where and when the jobs of a run run. It places their ranks on GPUs, starts them, and
// lets them continue after failures of hosts (recovery.h). All of it happens between events.
//
// - If all jobs of the run fit on the cluster together, they are placed before the run in the order of the
//   list. Each begins at its arrival and keeps its GPUs.
// - Otherwise a job gets free GPUs at its arrival, or waits in a queue (admission_queue.h). GPUs become free
//   when their job is over. The queue is looked at again at the next scheduling interval.
// - GPUs on a failed host are not given out, nor are those of a job that will restart on them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/compute/gpu_models.h"
#include "sim/compute/gpu_variation.h"
#include "sim/core/config.h"
#include "sim/core/engine.h"
#include "sim/jobs/admission_queue.h"
#include "sim/jobs/job_set.h"
#include "sim/jobs/recovery.h"
#include "sim/scheduling/placement.h"
#include "sim/scheduling/scheduling_intervals.h"
#include "sim/scheduling/scheduling_parameters.h"
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
    SchedulingIntervals& intervals;      // used only if jobs wait in a queue
    std::uint64_t seed = 1;
  };
  // Adds all jobs to Environment::jobs, in order. A job that is not placed before the run has, until it
  // begins, the GPUs that it would have alone. Throws ConfigError or InputError for a job that cannot run
  // even if it is alone: it lacks GPUs or memory, or its configuration is invalid.
  JobManager(const Environment& environment, std::vector<JobDescription> jobs);
  JobManager(const JobManager&) = delete;
  JobManager& operator=(const JobManager&) = delete;

  // Sets a callback for a job that is added during the run, the rest of a stopped one. It is called before
  // the job starts.
  void on_job_added(std::function<void(const JobDescription&)> callback) {
    on_job_added_ = std::move(callback);
  }
  // Lets the jobs arrive that arrive at 0, and schedules the arrivals of the others.
  void begin();
  // Returns whether all jobs are done, the rests of stopped jobs included.
  bool done() const { return jobs_.done() && !recovery_->is_pending(); }
  // Returns whether a job will arrive or restart later.
  bool is_pending() const;
  // Returns whether jobs get their GPUs at their arrival or later, because not all fit together.
  bool has_queue() const { return queue_.has_value(); }
  // Returns whether the job has arrived and waits for GPUs.
  bool is_queued(JobId job) const { return queue_ && queue_->contains(job); }
  // Returns a line for each job in the queue with what it waits for, for stall reports.
  std::vector<std::string> waiting(std::size_t limit) const;

  // Return the descriptions by number of the job.
  const std::vector<JobDescription>& descriptions() const { return descriptions_; }
  const Recovery& recovery() const { return *recovery_; }

 private:
  // GpuUse: by GPU, whether one job has it for itself, and whether several share it.
  struct GpuUse {
    std::vector<bool> taken, shared;
  };

  void connect_arrivals();
  void connect_decisions();
  void add_all();
  std::optional<std::vector<PlacedRanks>> place_together() const;
  std::vector<PlacedRanks> place_one_by_one() const;
  PlacedRanks place(const JobDescription& job, const GpuUse& use) const;
  std::optional<PlacedRanks> place_if_free(const JobDescription& job, const GpuUse& use) const;
  PlacedRanks find_gpus(const JobDescription& job, const GpuUse& use) const;
  void open_queue();
  void arrive(JobId job);
  void admit();
  bool start_if_free(JobId job);
  GpuUse no_use() const;
  GpuUse present_use() const;
  std::string describe_free() const;
  std::unique_ptr<ComputeTimes> times_of(const JobDescription& job,
                                         const std::vector<std::uint32_t>& gpus) const;
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
  std::unique_ptr<JournalReader> decisions_;          // passes announced decisions to the jobs
  SchedulingParameters scheduling_;
  std::unique_ptr<Recovery> recovery_;
  std::vector<bool> shares_;             // by job: its placement lets it share GPUs with others
  std::optional<AdmissionQueue> queue_;  // empty: all jobs fit together
  std::function<void(const JobDescription&)> on_job_added_;
};

}  // namespace netsim
