// Job: plays a TaskSource on GPUs: ready tasks to timers and communications, completions back to the source;
// and keeps the books (job_books.h): what was computed, in flight, exposed and idle at every rank, in integer
// picoseconds.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/core/event_loop.h"
#include "sim/workload/compute/compute_model.h"
#include "sim/workload/task.h"

namespace netsim {

// A task that ended. For a point-to-point communication start is when its sender started it, end when it was
// delivered.
struct TaskRecord {
  std::uint32_t rank = 0;
  Task task;
  std::uint64_t communication = 0;  // CommunicationRecord::id; nothing for a compute task
  Time posted = 0;                  // the rank reached it
  Time start = 0;                   // work or transfer began
  Time end = 0;
};

// A collective or point-to-point operation as a whole, when its last rank is done.
struct CommunicationRecord {
  std::uint64_t id = 0;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Stream stream = Stream::tp;
  std::uint32_t name = 0;
  std::uint32_t ranks = 0;
  std::uint32_t first_rank = 0;  // group order
  Bytes bytes = 0;
  Time first_start = 0, last_start = 0, end = 0;  // first and last rank's arrival, last rank's end
};

struct JobRecord;  // job_books.h

// One rank's iteration, or whole run: compute + exposed (all kinds) + idle = end - begin, exactly.
struct RankTimes {
  Time compute = 0;
  Time communication = 0;  // at least one in flight
  Time exposed = 0;        // in flight and no compute task running
  Time idle = 0;
  std::array<Time, kStreams> exposed_by{};  // adds up to exposed; split equally, remainder in Stream order
};

// Collectives are matched by group, point-to-point operations by (sender, receiver, tag), each in the order
// in which the ranks reach them. Task::not_before counts from the start of the job. Running a job throws
// InputError for a task that cannot be played: a peer, group, work or iteration that does not exist, no
// bytes, members that disagree.
class Job {
 public:
  struct Observer {
    std::function<void(const TaskRecord&)> task;                    // in order of end at each rank
    std::function<void(const CommunicationRecord&)> communication;  // when the last rank is done
  };
  // gpus[rank] is the GPU that the rank runs on, a different one each; GPU g runs in loops[set_of_gpu[g]].
  // durations[i] is the time of works()[i]. Handles EventKind::compute_done and EventKind::job of the loops;
  // origins first_origin + rank are its own. The executor's listener is this job.
  static std::unique_ptr<Job> create(const std::vector<EventLoop*>& loops,
                                     const std::vector<std::uint32_t>& set_of_gpu, Executor& executor,
                                     TaskSource& source, std::vector<std::uint32_t> gpus,
                                     std::vector<Time> durations, std::uint32_t first_origin,
                                     Observer observer);
  // All GPUs in one set.
  static std::unique_ptr<Job> create(EventLoop& loop, Executor& executor, TaskSource& source,
                                     std::vector<std::uint32_t> gpus, std::vector<Time> durations,
                                     std::uint32_t first_origin, Observer observer);
  virtual ~Job() = default;
  // All ranks begin now. Called while no set runs; fills the books itself.
  virtual void start() = 0;
  // From now on set `set` hands what happens to its ranks to `journal`, called from its thread, and not to
  // the books: whoever keeps the journals gives the records of all sets to apply(), in order of time and of
  // events, while no set runs. Without a journal all sets must run in one thread, event by event in order.
  using Journal = std::function<void(std::uint32_t set, const JobRecord& record)>;
  virtual void set_journal(Journal journal) = 0;
  virtual void apply(const JobRecord& record) = 0;
  // All below: while no set runs and all records are applied.
  virtual bool done() const = 0;
  virtual Time begin_time() const = 0;
  virtual Time end_time() const = 0;  // of the last task; valid when done
  virtual std::uint64_t tasks_done() const = 0;
  virtual std::uint64_t tasks_total() const = 0;
  // Books over [begin, until], one entry a rank. Valid at any time, for an `until` that is not before the
  // last event: loop.now() or later for a job under way, end_time() for a finished one.
  virtual std::vector<RankTimes> rank_times(Time until) const = 0;
  // Ends of the iterations that are done at all ranks, in order. Walks all unfinished tasks of an unfinished
  // job.
  virtual std::vector<Time> iteration_ends() const = 0;
  // What unfinished ranks wait for, one line each: for stall reports.
  virtual std::vector<std::string> waiting(std::size_t limit) const = 0;
};

}  // namespace netsim
