// Job: plays a TaskSource on GPUs: ready tasks to timers and communications, completions back to the source;
// and keeps the statistics (job_statistics.h): what was computed, in flight, exposed and idle at every rank,
// in integer picoseconds. A run has one or several (job_set.h), which know nothing of each other.
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
#include "sim/jobs/path_step.h"
#include "sim/scheduling/task_scheduler.h"
#include "sim/training/memory/memory_ledger.h"
#include "sim/workload/task.h"

namespace netsim {

// A task that ended. For a point-to-point communication start is when its sender started it, end when it was
// delivered.
struct TaskRecord {
  std::uint32_t job = 0;
  std::uint32_t rank = 0;
  Task task;
  // CommunicationRecord::id; what members that ask for circuits have in common; nothing for a compute task.
  std::uint64_t communication = 0;
  Time posted = 0;  // the rank reached it
  Time start = 0;   // work or transfer began
  Time end = 0;
};

// A collective or point-to-point operation as a whole, when its last rank is done.
struct CommunicationRecord {
  std::uint32_t job = 0;
  std::uint64_t id = 0;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Stream stream = Stream::tp;
  std::uint32_t name = 0;
  std::uint32_t ranks = 0;
  std::uint32_t first_rank = 0;  // group order
  std::uint32_t group = 0;       // of a collective: TaskSource::group()
  std::uint32_t root = 0;        // of a collective: Task::root
  Bytes bytes = 0;
  const OwnAlgorithm* algorithm = nullptr;        // of a collective: Task::algorithm
  std::uint32_t series = 0;                       // of a collective: Task::series
  GroupedTraffic grouped;                         // of a collective: Task::grouped
  const BlockCounts* counts = nullptr;            // of a collective: Task::counts
  Time first_start = 0, last_start = 0, end = 0;  // first and last rank's arrival, last rank's end
};

// One rank's iteration, or whole run: compute + exposed (all kinds) + idle = end - begin, exactly.
struct RankTimes {
  Time compute = 0;
  Time communication = 0;  // at least one in flight
  Time exposed = 0;        // in flight and no compute task running
  Time idle = 0;
  std::array<Time, kStreams> exposed_by{};  // adds up to exposed; split equally, remainder in Stream order
};

// An iteration that ranks have passed (Resumable::passed_iterations).
struct PassedIteration {
  std::uint32_t ranks = 0;  // that have passed it
  Time last = 0;            // when the last of these did
  Time storage_wait = 0;    // what the one that had waited longest for storage until it passed had waited
};

// What a job is to its run: what it plays, where, and from when on.
struct JobPlan {
  std::string name;                     // in tables and messages
  TaskSource* source = nullptr;         // outlives the job
  const ComputeTimes* times = nullptr;  // outlives the job
  std::vector<std::uint32_t> gpus;      // by rank, a different one each
  Time arrival = 0;
  std::uint8_t priority = 0;           // of its messages (TransferTraits)
  TaskScheduler* scheduler = nullptr;  // outlives the job; null: tasks are launched in program order
};

// Who is told of a job. The functions may be empty.
struct JobObserver {
  std::function<void(const TaskRecord&)> task;                    // in order of end at each rank
  std::function<void(const CommunicationRecord&)> communication;  // when the last rank is done
  // All ranks have done all of an iteration, and of those before it; `end`: when the last task of it ended.
  std::function<void(std::uint32_t job, std::uint32_t iteration, Time end)> iteration;
  // The steps of an iteration's critical path, in order of time, before `iteration` is called. Where this is
  // empty none is recorded.
  std::function<void(std::uint32_t job, std::uint32_t iteration, const PathStep& step)> path;
  // The memory of a rank has changed: of the first ranks of roles (MemoryLedger), where the source knows.
  std::function<void(const MemoryRecord&)> memory = {};
};

// Between events: while no set runs and all records are applied. Running a job throws InputError for a task
// that cannot be played: a peer, group, work, iteration or circuits that do not exist, no bytes, members that
// disagree. Task::not_before counts from the start of the job.
class Job {
 public:
  virtual ~Job() = default;
  virtual const JobPlan& plan() const = 0;
  virtual bool begun() const = 0;
  virtual bool done() const = 0;
  virtual Time begin_time() const = 0;  // its arrival
  virtual Time end_time() const = 0;    // of the last task that ended; valid when done
  virtual std::uint64_t tasks_done() const = 0;
  // Books over [begin, until], one entry a rank. Valid at any time, for an `until` that is not before the
  // last event: loop.now() or later for a job under way, end_time() for a finished one.
  virtual std::vector<RankTimes> rank_times(Time until) const = 0;
  // Ends of the iterations that are done at all ranks, in order.
  virtual const std::vector<Time>& iteration_ends() const = 0;
  // By iteration, of a job that can go on from a checkpoint; else empty.
  virtual const std::vector<PassedIteration>& passed_iterations() const = 0;
  // Returns how long the rank has waited that has waited longest for storage (Resumable::waits_for_storage).
  // `until` is not before the last event.
  virtual Time storage_wait(Time until) const = 0;
  // Where warm-up iterations are done (TaskSource::warm_up()): rank_times() at that moment; else empty.
  virtual const std::vector<RankTimes>& warm_up_times() const = 0;
  // Null: the source does not know what memory its tasks need.
  virtual const MemoryLedger* memory() const = 0;
  // The critical path of each of them, added up; empty where JobObserver::path is.
  virtual const std::vector<PathSummary>& paths() const = 0;
  // What unfinished ranks wait for, one line each: for stall reports.
  virtual std::vector<std::string> waiting(std::size_t limit) const = 0;
};

}  // namespace netsim
