// Recovery: stops and restarts the jobs of a run when hosts fail (`gpus.failures`). All of it happens between
// events.
//
// - The ranks on a failed host stop at the failure. The others continue until they wait for those ranks, and
//   the drives write what arrives.
// - A job that can resume from a checkpoint (Resumable) is stopped `detection` after the first failure of one
//   of its hosts. It resumes from the last checkpoint that the drives have completely written by then. That
//   checkpoint counts even if it became complete after the failure, or if a rank was not notified.
// - If that checkpoint holds the last iteration, the job is complete and ends there. Otherwise its rest
//   begins `restart` later as a job of its own. A spare host replaces each failed one; without a spare the
//   same host is repaired. A storage server keeps its data, so it is always repaired.
// - If another host of the job fails before the restart, the restart is postponed. That failure takes its own
//   `detection` and `restart`.
// - If the job ends by itself before it is stopped, the failed host had no work left, and nothing is lost.
// - A job that arrives on a failed host counts as failing at its arrival. Without recovery it stalls.
//
// docs/concepts/jobs.md defines the costs. Whole time = useful + lost + down + storage, in integer
// picoseconds, each at least 0.
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
#include "sim/core/ids.h"
#include "sim/jobs/job_set.h"
#include "sim/topology/topology.h"
#include "sim/training/checkpoint/checkpoint.h"

namespace netsim {

// JobRecovery: the restarts of a job whose hosts failed. Each restart is a job of its own in the report.
struct JobRecovery {
  std::uint32_t restarts = 0;
  // Iterations that all ranks had completed before a failure and that were not saved.
  std::uint32_t repeated = 0;
  // Times in integer picoseconds, each at least 0: whole = useful + lost + down + io.
  Time whole = 0;  // from the first begin to the end of the last job
  Time lost = 0;   // from the last rank's passing of the saved iteration, or the begin, to the failure
  Time down = 0;   // from the failure until the job began again, or was found to be complete
  Time io = 0;     // longest wait of any rank for storage, outside of the lost time
  Time useful() const { return whole - lost - down - io; }
  double goodput() const {
    return whole > 0 ? static_cast<double>(useful()) / static_cast<double>(whole) : 0;
  }
};

class Recovery {
 public:
  // Rest: the part of job `before` that is not done.
  struct Rest {
    JobId before = 0;
    std::string name;
    std::unique_ptr<TaskSource> source;
    std::vector<GpuId> gpus;
  };
  // Adds the rest to the jobs, as the last job, arriving now.
  using Continue = std::function<void(Rest)>;

  // Must be constructed after all jobs of the run were added. All arguments passed by reference must outlive
  // it.
  Recovery(Engine& engine, const Cluster& cluster, JobSet& jobs, std::vector<HostFailure> failures,
           Continue continue_with);

  // Sets how recovery learns by GPU whether a job uses it, before it looks for a spare host. Without it, the
  // GPUs of a job stay used when it has ended. Must be called before begin().
  void set_use(std::function<std::vector<bool>()> use) { use_ = std::move(use); }
  // Schedules the failures. Called when the run begins, before any job starts, so that a host that fails at a
  // job's arrival has failed for that job.
  void begin();
  // Starts a job at its arrival, without its ranks on failed hosts.
  void start(JobId job);

  // Returns whether a job was stopped, or will be, and has not restarted.
  bool is_pending() const;
  // Returns whether a failure stopped the job before it was complete.
  bool has_stopped(JobId job) const {
    return states_[job].stage == Stage::down || states_[job].stage == Stage::replaced;
  }
  // Returns whether a job that has begun still needs its GPUs: it is not over, or it will restart on them.
  bool holds_gpus(JobId job) const {
    return states_[job].stage != Stage::replaced &&
           (!jobs_.job(job).done() || states_[job].stage == Stage::down);
  }
  bool has_failed(HostId host) const { return failed_at_[host].has_value(); }
  // Returns the failures of the configuration.
  const std::vector<HostFailure>& failures() const { return failures_; }
  // Returns the failed hosts on which ranks of a job stopped, with the times.
  const std::vector<std::pair<HostId, Time>>& failed_hosts(JobId job) const {
    return states_[job].failed_hosts;
  }
  // Returns the costs of the chain of jobs that ends with this one, which may still run or be down. Returns
  // nothing if it had no failure, or if another job continues it.
  std::optional<JobRecovery> of(JobId job) const;
  // Returns a line for each failed host of a job that does not recover, for stall reports.
  std::vector<std::string> waiting(std::size_t limit) const;

 private:
  enum class Stage : std::uint8_t {
    runs,      // runs, has not begun, or has ended by itself
    failing,   // a host has failed; the job will be stopped
    down,      // stopped; the rest will be restarted
    complete,  // stopped; there is no rest
    replaced   // another job continues it
  };
  struct JobState {
    Stage stage = Stage::runs;
    std::optional<JobId> before;    // the job that this one continues
    std::uint32_t done_before = 0;  // number of iterations that the jobs before have saved
    std::uint32_t saved = 0;  // number of iterations of this job that are saved; valid once it is stopped
    Time failed = 0;          // time of the first failure of one of its hosts
    Time storage_wait = 0;    // longest storage wait of any rank at that time
    Time restart_at = 0;
    std::vector<std::pair<HostId, Time>> failed_hosts;  // hosts on which ranks stopped, with the times
  };

  void fail(HostId host);
  void lose(JobId job, HostId host);
  void stop(JobId job);
  void restart(JobId job);
  std::vector<GpuId> gpus_after_failure(const JobPlan& plan);
  std::optional<HostId> spare_of(HostId host) const;
  void replace(std::vector<GpuId>& gpus, HostId host, HostId spare);
  std::vector<RankId> ranks_on(const JobPlan& plan, HostId host) const;
  std::vector<GpuId> gpus_of(HostId host) const;
  const Resumable* resumable(JobId job) const;
  std::uint32_t saved_iterations(JobId job) const;
  bool is_failing(JobId job) const;
  void add_cost(JobRecovery& recovery, JobId job, Time until) const;
  Time end_of(JobId job) const;

  Engine& engine_;
  const Cluster& cluster_;
  JobSet& jobs_;
  std::vector<HostFailure> failures_;
  Continue continue_with_;
  std::vector<JobState> states_;                // by job
  std::function<std::vector<bool>()> use_;      // empty: GPUs of jobs stay used
  std::vector<bool> taken_;                     // by GPU: a job uses it, or did before a failure
  std::vector<std::optional<Time>> failed_at_;  // by host; empty: it has not failed, or is repaired
};

}  // namespace netsim
