// Recovery: what becomes of a run's jobs when hosts fail (`gpus.failures`). The ranks on the host stop; a job
// that can go on from a checkpoint (Resumable) is stopped when the others have noticed, and what is left of
// it begins again as a job of its own, on the same GPUs but for those of failed hosts. Everything happens
// between events. Knows which job goes on which, and what that has cost.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/engine.h"
#include "sim/report/results.h"
#include "sim/topology/topology.h"
#include "sim/workload/compute/gpu_variation.h"
#include "sim/workload/job/job_set.h"

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

  // As the run begins.
  void begin();
  // All ranks of the job have done an iteration, whose last task ended at `end`.
  void iteration_done(std::uint32_t job, Time end);

  // Whether a job was stopped, or will be, and has not begun again.
  bool is_pending() const { return down_ > 0; }
  // Whether another job goes on where this one was stopped.
  bool goes_on(std::uint32_t job) const;
  // Of the chain of jobs that ends with this one, which may still be running; nothing where it is none, or
  // not its end.
  std::optional<JobRecovery> of(std::uint32_t job) const;

 private:
  // Of a job that goes on: the one before, what of it need not be done again, and when a host failed.
  struct Continued {
    std::uint32_t job = 0, iterations = 0;
    Time failed = 0;
  };
  struct JobState {
    std::optional<Continued> continued;
    bool failing = false;  // a host of it has failed
    // Where it writes checkpoints: what the rank that waited longest for storage had waited at the end of
    // each iteration.
    std::vector<Time> storage_waits;
  };

  void fail(std::uint32_t host);
  void stop(std::uint32_t job, Time failed);
  void restart(std::uint32_t job, Time failed);
  std::vector<std::uint32_t> gpus_after_failure(const JobPlan& plan);
  Time storage_wait(std::uint32_t job, Time until) const;
  Time end_of(std::uint32_t job) const;

  Engine& engine_;
  const Cluster& cluster_;
  JobSet& jobs_;
  std::vector<HostFailure> failures_;
  Continue go_on_;
  std::vector<JobState> states_;  // by job
  std::vector<bool> taken_;       // by GPU: a job has it, or had it before a failure
  std::vector<bool> failed_;      // by host
  std::uint32_t down_ = 0;        // jobs that were stopped, or will be, and have not begun again
};

}  // namespace netsim
