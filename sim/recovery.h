// Recovery decides what becomes of a run's jobs when hosts fail (`gpus.failures`). All of it happens between
// events.
//
// - The ranks on a failed host stop at the failure. The others go on until they wait for them, and the drives
//   write what arrives.
// - A job that can go on from a checkpoint (Resumable) is stopped `detection` after the first failure of one
// of
//   its hosts. It goes on from the last checkpoint of which the drives have written all parts by then. That
//   checkpoint counts even if it became whole after the failure, or a rank was never told.
// - If that checkpoint holds the last iteration, the job is complete and ends there. Otherwise what is left
// of
//   it begins `restart` later as a job of its own. A spare host takes the place of each failed one; without a
//   spare the same host is repaired. A storage server keeps what is written, so it is always repaired.
// - If another host of the job fails before the restart, the restart is put off. That failure takes its own
//   `detection` and `restart`.
// - If the job ends by itself before it is stopped, the failed host had nothing left to do, and nothing is
// lost.
// - A job that arrives on a failed host counts as failing at its arrival. Without recovery it stalls.
//
// docs/concepts/jobs.md defines the costs. Whole time = useful + lost + down + storage, in integer
// picoseconds, none below 0.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/compute/gpu_variation.h"
#include "sim/core/engine.h"
#include "sim/jobs/job_set.h"
#include "sim/report/results.h"
#include "sim/topology/topology.h"
#include "sim/training/checkpoint/checkpoint.h"

namespace netsim {

class Recovery {
 public:
  // What is left of job `before`.
  struct Rest {
    std::uint32_t before = 0;
    std::string name;
    std::unique_ptr<TaskSource> source;
    std::vector<std::uint32_t> gpus;
  };
  // Adds it to the jobs, as the last one, arriving now.
  using Continue = std::function<void(Rest)>;

  // All that is referred to outlives this. After all jobs of the run were added.
  Recovery(Engine& engine, const Cluster& cluster, JobSet& jobs, std::vector<HostFailure> failures,
           Continue go_on);

  // Plans the failures. As the run begins, before any job starts, so that a host that fails at the arrival of
  // a job has failed for it.
  void begin();
  // Starts a job at its arrival, without its ranks on failed hosts.
  void start(std::uint32_t job);

  // Whether a job was stopped, or will be, and has not begun again.
  bool is_pending() const;
  // Whether a failure stopped the job before it was complete.
  bool has_stopped(std::uint32_t job) const {
    return states_[job].stage == Stage::down || states_[job].stage == Stage::replaced;
  }
  // Costs of the chain of jobs that ends with this one, which may still run or be down. Nothing if no failure
  // concerned it, or another job goes on in its place.
  std::optional<JobRecovery> of(std::uint32_t job) const;
  // Names the failed hosts of jobs that do not recover, one line each: for stall reports.
  std::vector<std::string> waiting(std::size_t limit) const;

 private:
  enum class Stage : std::uint8_t {
    runs,      // or has not begun, or has ended by itself
    failing,   // a host has failed; the job will be stopped
    down,      // stopped; what is left will begin again
    complete,  // stopped; nothing is left
    replaced   // another job goes on
  };
  struct JobState {
    Stage stage = Stage::runs;
    std::optional<std::uint32_t> before;  // the job in whose place this one goes on
    std::uint32_t done_before = 0;        // iterations that the jobs before have saved
    std::uint32_t saved = 0;              // iterations of this job that are saved; once it is stopped
    Time failed = 0;                      // the first failure of a host of it
    Time storage_wait = 0;                // what the rank that waited longest for storage had waited by then
    Time restart_at = 0;
    std::vector<std::pair<std::uint32_t, Time>> failed_hosts;  // hosts on which ranks stopped, and when
  };

  void fail(std::uint32_t host);
  void lose(std::uint32_t job, std::uint32_t host);
  void stop(std::uint32_t job);
  void restart(std::uint32_t job);
  std::vector<std::uint32_t> gpus_after_failure(const JobPlan& plan);
  std::optional<std::uint32_t> spare_of(std::uint32_t host) const;
  void replace(std::vector<std::uint32_t>& gpus, std::uint32_t host, std::uint32_t spare);
  std::vector<std::uint32_t> ranks_on(const JobPlan& plan, std::uint32_t host) const;
  std::vector<std::uint32_t> gpus_of(std::uint32_t host) const;
  const Resumable* resumable(std::uint32_t job) const;
  std::uint32_t saved_iterations(std::uint32_t job) const;
  bool is_failing(std::uint32_t job) const;
  void add_cost(JobRecovery& recovery, std::uint32_t job, Time until) const;
  Time end_of(std::uint32_t job) const;

  Engine& engine_;
  const Cluster& cluster_;
  JobSet& jobs_;
  std::vector<HostFailure> failures_;
  Continue go_on_;
  std::vector<JobState> states_;                // by job
  std::vector<bool> taken_;                     // by GPU: a job has it, or had it before a failure
  std::vector<std::optional<Time>> failed_at_;  // by host; nothing: it has not failed, or is repaired
};

}  // namespace netsim
