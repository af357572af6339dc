// TaskJob: a job as the run that plays it sees it (job_set.h). Private to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sim/jobs/circuit_requests.h"
#include "sim/jobs/job.h"
#include "sim/jobs/job_statistics.h"

namespace netsim {

// From now on set `set` hands what happens to its ranks to the journal, called from its thread.
using JobJournal = std::function<void(std::uint32_t set, const JobRecord& record)>;

// What all jobs of a run share; all of it outlives them.
struct JobRun {
  const std::vector<EventLoop*>* loops = nullptr;
  const std::vector<std::uint32_t>* set_of_gpu = nullptr;
  Executor* executor = nullptr;
  ComputeDevices* devices = nullptr;
  const JobJournal* journal = nullptr;  // while it is empty the statistics hear of everything at once
  const CircuitAccess* circuits = nullptr;
  std::uint32_t first_origin = 0;  // of the run's ranks
};

class TaskJob : public Job {
 public:
  // `number`: of the job in its run. Its ranks are first_rank, first_rank + 1, ... of the run's.
  static std::unique_ptr<TaskJob> create(const JobRun& run, std::uint32_t number, std::uint32_t first_rank,
                                         JobPlan plan, JobObserver observer);

  // All ranks begin. Once, at the time of its arrival, while no set runs and the journal is empty.
  virtual void start() = 0;
  // The rank launches nothing any more, and nobody hears of the end of what it has launched. Its kernels
  // leave the GPU. While no set runs; before start() too: the rank never begins.
  virtual void halt(std::uint32_t rank, Time now) = 0;
  // Halts all ranks, and the job is over (JobStatistics::stop). While no set runs and the journal is empty.
  virtual void stop(Time now, bool complete) = 0;
  // EventKind::job of one of its ranks.
  virtual void resume(std::uint32_t rank, std::uint64_t argument) = 0;
  virtual void compute_done(std::uint32_t gpu, std::uint32_t handle) = 0;
  virtual void communication_done(std::uint32_t gpu, const CommunicationRequest& request, Time started) = 0;
  // A member's request has come to the switches, or its pause is over. Between events.
  virtual void circuits_asked(const CircuitRequest& request) = 0;
  virtual void apply(const JobRecord& record) = 0;
  virtual void apply(const TransferRecord& record, std::span<const PortDelay> ports) = 0;
};

}  // namespace netsim
