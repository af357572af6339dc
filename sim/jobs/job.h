// Job: runs the tasks of a TaskSource on GPUs. It turns ready tasks into timers and communications and
// returns completions to the source. It keeps the statistics of every rank (job_statistics.h): time computed,
// in flight, exposed and idle, in integer picoseconds.
//
// A run has one or several jobs (job_set.h), which do not depend on each other.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/compute/compute_devices.h"
#include "sim/compute/compute_times.h"
#include "sim/core/event_loop.h"
#include "sim/core/ids.h"
#include "sim/jobs/path_step.h"
#include "sim/jobs/task_scheduling.h"
#include "sim/scheduling/network_view.h"
#include "sim/training/memory/memory_ledger.h"
#include "sim/workload/task_source.h"

namespace netsim {

// TaskRecord: a task that ended. A point-to-point communication starts when its sender starts it and ends at
// delivery.
struct TaskRecord {
  JobId job = 0;
  RankId rank = 0;
  Task task;
  // CommunicationRecord::id, or the id shared by the members of a circuit request; 0 for a compute task.
  std::uint64_t communication = 0;
  Time posted = 0;  // the rank reached the task
  Time start = 0;   // work or transfer began, or its first part
  Time end = 0;
  std::uint32_t parts = 1;  // parts in which a task scheduler launched it
};

// CommunicationRecord: a collective or point-to-point operation as a whole. It is written when the last rank
// is done.
struct CommunicationRecord {
  JobId job = 0;
  std::uint64_t id = 0;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Stream stream = Stream::tp;
  std::uint32_t name = 0;
  std::uint32_t ranks = 0;
  std::uint32_t first_rank = 0;  // rank that is member 0 of the group
  std::uint32_t group = 0;       // collectives only: TaskSource::group()
  std::uint32_t root = 0;        // collectives only: CollectiveTask::root
  Bytes bytes = 0;
  std::uint32_t parts = 1;                        // parts in which a task scheduler launched it
  const OwnAlgorithm* algorithm = nullptr;        // collectives only: CollectiveTask::algorithm
  std::uint32_t series = 0;                       // collectives only: CollectiveTask::series
  GroupedTraffic grouped;                         // collectives only: Task::grouped
  const BlockCounts* counts = nullptr;            // collectives only: CollectiveTask::counts
  Time first_start = 0, last_start = 0, end = 0;  // first and last rank's start, last rank's end
};

// RankTimes: the times of one rank over an iteration or the whole run, in ps. Exactly, compute + exposed (all
// kinds) + idle = end - begin.
struct RankTimes {
  Time compute = 0;
  Time communication = 0;  // at least one communication in flight
  Time exposed = 0;        // a communication in flight and no compute task running
  Time idle = 0;
  // Exposed time by stream, which adds up to `exposed`. Time shared by several streams is split equally, with
  // the remainder in Stream order.
  std::array<Time, kStreams> exposed_by{};
  // A communication of a stream in flight whose operations are cut into pieces (Program::cut_streams), and a
  // compute task running.
  Time hidden_of_cuts = 0;
};

// PassedIteration: an iteration that ranks have passed (Resumable::passed_iterations).
struct PassedIteration {
  std::uint32_t ranks = 0;  // number of ranks that have passed it
  Time last = 0;            // time at which the last of these passed it
  Time storage_wait = 0;    // largest total wait for storage of any rank when it passed
};

// JobPlan: describes a job to its run: its tasks, its GPUs and its arrival.
struct JobPlan {
  std::string name;                     // used in tables and messages
  TaskSource* source = nullptr;         // must outlive the job
  const ComputeTimes* times = nullptr;  // must outlive the job
  // By rank, all different; until the job begins it may get others. Empty: its state is made when it gets
  // GPUs, and freed when it has ended.
  std::vector<GpuId> gpus;
  Time arrival = 0;
  std::uint8_t priority = 0;  // of the job's messages (TransferTraits)
  // Null: the communications of a stream are launched in program order, one after the other.
  std::shared_ptr<const TaskScheduling> scheduling = nullptr;
  std::uint8_t traffic_class = 0;  // of those of the job's messages that are of class 0
};

// JobObserver: functions that are called about a job's progress. Each may be empty.
struct JobObserver {
  std::function<void(const TaskRecord&)> task;                    // called in order of end at each rank
  std::function<void(const CommunicationRecord&)> communication;  // called when the last rank is done
  // Called when all ranks have done all of an iteration and of those before it. `end` is the time at which
  // the last task of it ended.
  std::function<void(JobId job, std::uint32_t iteration, Time end)> iteration;
  // Called for each step of an iteration's critical path, in order of time, before `iteration` is called. If
  // it is empty, no paths are recorded.
  std::function<void(JobId job, std::uint32_t iteration, const PathStep& step)> path;
  // Called when the memory of a rank changes, for the first rank of each role (MemoryLedger). The source must
  // know its tasks' memory.
  std::function<void(const MemoryRecord&)> memory = {};
};

// Job: the interface to a job. Its methods are called between events, while no set runs and all records are
// applied. Task::not_before counts from the start of the job.
//
// Running a job throws InputError for an invalid task. Its peer, group, work, iteration or circuits do not
// exist, it has no bytes, or members disagree.
class Job {
 public:
  virtual ~Job() = default;
  virtual const JobPlan& plan() const = 0;
  virtual bool begun() const = 0;
  virtual bool done() const = 0;
  // Returns the begin of the ranks: the job's arrival, or later if it waited for GPUs.
  virtual Time begin_time() const = 0;
  virtual Time end_time() const = 0;  // end of the last task; valid when done
  virtual std::uint64_t tasks_done() const = 0;
  // Returns the statistics over [begin, until], one entry for each rank. May be called at any time; `until`
  // must not be before the last event. It is loop.now() or later for a running job and end_time() for a
  // finished one.
  virtual std::vector<RankTimes> rank_times(Time until) const = 0;
  // Returns the ends of the iterations that are done at all ranks, in order.
  virtual const std::vector<Time>& iteration_ends() const = 0;
  // Returns the passed iterations of a job that can resume from a checkpoint; otherwise an empty list.
  virtual const std::vector<PassedIteration>& passed_iterations() const = 0;
  // Returns the longest total wait of any rank for storage (Resumable::waits_for_storage). `until` must not
  // be before the last event.
  virtual Time storage_wait(Time until) const = 0;
  // Returns the times of each rank up to the end of the warm-up iterations (TaskSource::warm_up()), of the
  // tasks of these only. What a rank has already done of later iterations is idle time here. Returns an empty
  // list before that end.
  virtual const std::vector<RankTimes>& warm_up_times() const = 0;
  // Returns null if the source does not know the memory of its tasks.
  virtual const MemoryLedger* memory() const = 0;
  // Returns the summed critical path of each ended iteration; empty if JobObserver::path is empty.
  virtual const std::vector<PathSummary>& paths() const = 0;
  // Returns what the job's task scheduler did so far. The name is empty if there is none.
  virtual SchedulingSummary scheduling() const = 0;
  // Returns the communications that a rank has launched and another has not, by rank.
  virtual std::vector<Stall> stalls() const = 0;
  // Returns one line for each wait of an unfinished rank, at most `limit`, for stall reports. A circle of
  // waits comes first.
  virtual std::vector<std::string> waiting(std::size_t limit) const = 0;
  // Returns one line for each wait of a circle of waits under a task scheduler, or nothing if there is none.
  // Meaningful only when no event is pending.
  virtual std::vector<std::string> circle() const = 0;
};

}  // namespace netsim
