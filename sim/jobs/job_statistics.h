// JobStatistics: the statistics that need more than one rank of a job. They keep each rank's times, the
// operations that ranks share, and the ends of iterations and of the job. They call the observer.
//
// The statistics know only the records they are given, ordered by time and then by the order of events. The
// run never queries them while it executes. Ranks may therefore run ahead of the statistics, each set with
// its own journal; the journals are merged in order later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "sim/core/ids.h"
#include "sim/jobs/communication_id.h"
#include "sim/jobs/critical_path.h"
#include "sim/jobs/job.h"
#include "sim/jobs/rank_ledger.h"
#include "sim/training/checkpoint/checkpoint.h"
#include "sim/training/memory/memory_ledger.h"
#include "sim/workload/task_source.h"

namespace netsim {

// JobRecord: an event of one task of one rank. It is plain data, because a journal is an array of records.
struct JobRecord {
  enum class Kind : std::uint8_t {
    compute_begins,
    compute_ends,
    // The rank enters the operation, asks for circuits, copies to or from its host, or computes on its CPUs.
    communication_begins,
    // The rank's part is done (a point-to-point sender's when acknowledged), or circuits are up.
    communication_ends
  };
  // Cause: the reason why a task begins at the time of the record.
  enum class Cause : std::uint8_t {
    arrival,         // the job's arrival
    earliest_start,  // Task::not_before or CollectiveTask::pause
    task_ended,      // end of the task, or part, with the rank's last record before this one
    decided          // the decision of rank `decided_by` to launch the communication
  };
  Kind kind = Kind::compute_begins;
  Cause cause = Cause::arrival;  // set in records of begins only
  JobId job = 0;
  RankId rank = 0;
  // Ends only: the rank's first iteration with a task that has not ended (TaskSource::open_iteration).
  std::uint32_t open_iteration = 0;
  // Ends only, in a job that can resume from a checkpoint: Resumable::passed_iterations, waits_for_storage.
  std::uint32_t passed_iterations = 0;
  bool waits_for_storage = false;
  Time time = 0;
  Time posted = 0;                  // ends only: the rank reached the task
  Time start = 0;                   // ends only: TaskRecord::start
  std::uint64_t communication = 0;  // communications only: the id
  // Id of the part that begins or ends. It is equal to `communication` if the communication is not cut.
  std::uint64_t operation = 0;
  std::uint32_t parts = 1;             // parts of the communication
  bool first_part = true;              // begins only: no part of it began before at the rank
  bool last_part = true;               // ends only: all parts have ended at the rank
  RankId decided_by = RankId::none();  // with Cause::decided
  Task task;
};
static_assert(std::is_trivially_copyable_v<JobRecord>);

// Returns the key of the message that a send or receive of `rank` transfers.
inline MessageKey message_of(RankId rank, const Task& task) {
  const bool sending = task.kind() == TaskKind::send;
  const MessageTask& message = task.message();
  return {sending ? rank : message.peer, sending ? message.peer : rank, message.tag, task.sequence};
}

class JobStatistics {
 public:
  // `source` provides groups and names, and at the beginning the ranks that have tasks. `job` is the job's
  // number in the run, for records. `gpus` holds the GPU of each rank, for critical paths. With `at_begin`
  // prepare() makes the state of the ranks later.
  JobStatistics(const TaskSource& source, JobId job, JobObserver observer,
                const std::vector<GpuId>& gpus = {}, bool at_begin = false);

  // Makes the state of the ranks. Called once for a job that is made when it begins, before open().
  void prepare();
  // Replaces the GPU of each rank. Must be called before open(), or while no task of the job runs.
  void set_gpus(const std::vector<GpuId>& gpus) {
    if (path_ && opened_) path_->move(gpus);
    if (path_ && !opened_) path_.emplace(gpus);
  }
  // Frees the state of the ranks of a job that is done. All that the functions below return stays.
  void release();
  // Starts the time of all ranks, as RankLedger::open().
  void open(Time begin, std::uint32_t cut_streams = 0);
  // Applies a record. The records of one rank, and of the ranks of one operation, come in order of time.
  // Throws InputError where members of an operation disagree.
  void apply(const JobRecord& record);
  // Ends the time of a rank, which does nothing from now on.
  void halt(RankId rank, Time now);
  // Ends the job. `complete` means that no part of it has to be repeated, so all its iterations end. An
  // iteration with unfinished ranks ends with the last task of it that has ended.
  void stop(Time now, bool complete);
  // Applies a transfer, before the records that it causes. Only called if critical paths are enabled.
  void apply(const TransferRecord& record, std::span<const PortDelay> ports) {
    if (path_) path_->released(record, ports);
  }

  // Returns whether every rank has ended all its tasks. False before open().
  bool done() const { return opened_ && ranks_left_ == 0; }
  bool opened() const { return opened_; }
  std::uint64_t tasks_done() const { return tasks_done_; }
  Time begin_time() const { return begin_; }
  Time end_time() const { return end_; }
  // Returns the times up to `until`. A rank whose last record is later is counted up to that record, because
  // it may be ahead of the end of an iteration.
  std::vector<RankTimes> rank_times(Time until) const;
  // Returns the ends of the iterations that all ranks have done, in order. An end is the last end of a task
  // of that iteration or one before.
  const std::vector<Time>& iteration_ends() const { return iteration_ends_; }
  const std::vector<PassedIteration>& passed_iterations() const { return passed_; }
  Time storage_wait(Time until) const;
  // Returns the times of each rank up to the end of the warm-up, of the tasks of warm-up iterations only
  // (Job::warm_up_times()).
  const std::vector<RankTimes>& warm_up_times() const { return warm_up_times_; }
  const MemoryLedger* memory() const { return memory_ ? &*memory_ : nullptr; }
  // Returns the path summaries by iteration; empty if JobObserver::path is empty.
  const std::vector<PathSummary>& paths() const { return paths_; }
  // Returns whether the sender of a point-to-point operation has begun. Returns false for an unknown
  // operation.
  bool sender_began(std::uint64_t communication) const;

 private:
  // Operation: a communication or circuit request, from its first member's start to its last member's end.
  // A communication that is cut has one for the whole and one for each part.
  struct Operation {
    std::uint64_t id = 0;
    CollectiveKind kind = CollectiveKind::all_reduce;
    Stream stream = Stream::tp;
    std::uint32_t name = 0;
    std::uint32_t ranks = 0, first_rank = 0, parts = 1;
    std::uint32_t finished = 0;  // members that have finished
    std::uint32_t opener = 0;    // the member that began first
    Task task;                   // the opener's task, with which the tasks of the other members must agree
    Time first_start = 0, last_start = 0;
    // The following five are for point-to-point operations only.
    std::uint32_t iteration = 0;    // the sender's
    bool receiver_started = false;  // the receiver has reached the operation
    MessageKey message;
    Time sender_start = kNever;
    Time delivered = kNever;  // the end that deliver() entered
  };

  template <class Change>
  void change_ledgers(RankId rank, std::uint32_t iteration, const Change& change);
  void end_warm_up(Time now);
  void count_memory(const JobRecord& record);
  void begin_communication(const JobRecord& record);
  void begin_message(const JobRecord& record, Operation& part);
  void end_communication(const JobRecord& record);
  Operation& join(const JobRecord& record, std::uint64_t id);
  Operation& operation_of(const JobRecord& record, std::uint64_t id);
  bool leave(const JobRecord& record, std::uint64_t id, Time end);
  Operation describe(const JobRecord& record, std::uint64_t id) const;
  void require_agreement(const Operation& operation, const JobRecord& record) const;
  static bool is_sent_early(const Operation& operation, const JobRecord& record);
  void deliver(Operation& operation, Time now);
  void report(const Operation& operation, Time end) const;
  void end_task(const JobRecord& record, Time end);
  void note_iteration(const JobRecord& record, Time end);
  void note_passed(const JobRecord& record);
  void note_storage(RankId rank, bool waits, Time now);
  void close_iterations(Time now);
  void close_iteration(Time now);

  const TaskSource& source_;
  std::uint32_t job_;
  JobObserver observer_;
  std::vector<RankLedger> ledgers_;  // by rank
  // By rank, of the tasks of warm-up iterations only; empty where there are none, and after them.
  std::vector<RankLedger> warm_up_ledgers_;
  std::vector<RankTimes> final_times_;  // by rank, after release()
  std::vector<Operation> operations_;   // arena
  std::vector<std::uint32_t> free_operations_;
  // Index in operations_ by communication id; looked up only, never iterated.
  std::unordered_map<std::uint64_t, std::uint32_t> live_;
  std::vector<std::uint32_t> open_iteration_;  // by rank
  std::vector<std::uint32_t> ranks_in_;        // by iteration: number of ranks whose open_iteration_ it is
  std::vector<Time> last_ends_;                // by iteration: the latest end of a task of it so far
  std::vector<Time> iteration_ends_;           // of the iterations that are done
  // StorageWait: the time that a rank has waited for storage, and the begin of its present wait.
  struct StorageWait {
    Time waited = 0, since = kNever;
    Time until(Time now) const { return waited + (since == kNever ? 0 : now - since); }
  };
  std::vector<StorageWait> storage_waits_;  // by rank
  const Resumable* resumable_;              // the source; null: it cannot resume from a checkpoint
  std::vector<PassedIteration> passed_;     // by iteration, if at least one rank passed it
  std::vector<std::uint32_t> passed_by_;    // by rank: number of iterations that it has passed
  std::uint32_t ranks_left_ = 0;            // ranks with tasks that have not ended
  std::uint64_t tasks_done_ = 0;
  bool opened_ = false;
  std::optional<CriticalPath> path_;  // set if critical paths are enabled
  std::vector<PathSummary> paths_;    // by iteration
  std::optional<MemoryLedger> memory_;
  std::vector<RankTimes> warm_up_times_;
  Time begin_ = 0, end_ = 0;
};

}  // namespace netsim
