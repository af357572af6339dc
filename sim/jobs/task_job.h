// TaskJob: a job as the run sees it that executes it (job_set.h). Used within sim/jobs only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/core/ids.h"
#include "sim/jobs/job.h"
#include "sim/jobs/job_statistics.h"
#include "sim/jobs/launch_decision.h"
#include "sim/jobs/rendezvous.h"
#include "sim/transport/circuit_control.h"

namespace netsim {

// JobJournal: takes the records of the ranks of set `set`. It is called from that set's thread.
using JobJournal = std::function<void(std::uint32_t set, const JobRecord& record)>;

// JobRun: the objects that all jobs of a run share. They must outlive the jobs.
struct JobRun {
  const std::vector<EventLoop*>* loops = nullptr;
  const std::vector<std::uint32_t>* set_of_gpu = nullptr;
  Executor* executor = nullptr;
  ComputeDevices* devices = nullptr;
  const JobJournal* journal = nullptr;  // if empty, records go to the statistics at once
  CircuitControl* circuits = nullptr;   // null: the network has no optical circuits
  const AnnounceArrival* announce = nullptr;
  const AnnounceDecision* announce_decision = nullptr;
  std::uint32_t first_origin = 0;  // first origin of the run's ranks
};

class TaskJob : public Job {
 public:
  // `number` is the job's number in its run. Its ranks are first_rank, first_rank + 1, ... among those of the
  // run.
  static std::unique_ptr<TaskJob> create(const JobRun& run, std::uint32_t number, std::uint32_t first_rank,
                                         JobPlan plan, JobObserver observer);

  // Gives a job that has not begun other GPUs, with their durations, and a begin after its arrival. `times`
  // must outlive the job. `scheduling` is that of a job whose state is made now; otherwise it is null.
  virtual void place(std::vector<GpuId> gpus, const ComputeTimes& times, Time begin,
                     std::shared_ptr<const TaskScheduling> scheduling) = 0;
  // Holds all tasks of the first iteration of which no rank has begun a task. When all iterations before it
  // have ended, the job is at rest. Returns the number of that iteration, or nothing if the job ends before.
  // Called between events.
  virtual std::optional<std::uint32_t> hold() = 0;
  // Gives a job at rest other GPUs, with their durations. `times` must outlive the job.
  virtual void move(std::vector<GpuId> gpus, const ComputeTimes& times) = 0;
  // Lets a job that holds its tasks go on, now. Called like start().
  virtual void go_on() = 0;
  // Frees what only a running job needs. Called between events, for a job that is done.
  virtual void release() = 0;
  // Sets the least priority, and the data class, of the messages of all tasks that become ready from now on.
  virtual void set_traffic(std::uint8_t priority, std::uint8_t traffic_class) = 0;
  // Begins all ranks. Called once, at the job's begin, while no set runs and the journal is empty.
  virtual void start() = 0;
  // Halts a rank: it launches no more tasks, the ends of launched tasks are not reported, and its kernels
  // leave the GPU. Called while no set runs. If called before start(), the rank never begins.
  virtual void halt(RankId rank, Time now) = 0;
  // Halts all ranks and ends the job (JobStatistics::stop). Called while no set runs and the journal is
  // empty.
  virtual void stop(Time now, bool complete) = 0;
  // Handles EventKind::job of one of the job's ranks.
  virtual void resume(RankId rank, std::uint64_t argument) = 0;
  virtual void compute_done(GpuId gpu, std::uint32_t handle) = 0;
  virtual void communication_done(GpuId gpu, const CommunicationRequest& request, Time started) = 0;
  // Handles an arrival that a rank has announced (rendezvous.h). Called between events.
  virtual void arrived(const MemberArrival& arrival) = 0;
  // Handles a decision that the first rank of a group has announced. Called between events.
  virtual void decided(const LaunchDecision& decision) = 0;
  // Calls the task scheduler of every rank once more, in events of their own. Called between events, when
  // nothing is pending.
  virtual void call_schedulers() = 0;
  virtual void apply(const JobRecord& record) = 0;
  virtual void apply(const TransferRecord& record, std::span<const PortDelay> ports) = 0;
};

}  // namespace netsim
