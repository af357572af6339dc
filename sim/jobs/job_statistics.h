// JobStatistics: all that looks at more than one rank of a job: what was computed, in flight and exposed at
// every rank, the operations that ranks share, the ends of iterations and of the job, and who is told of what
// ended.
//
// The statistics know nothing of the run but the records they are given, in order of what happened (time,
// then the order of the events), and the run never asks them anything: so ranks may run ahead of the
// statistics, each with a journal of its own, which are put in order later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "sim/jobs/communication_id.h"
#include "sim/jobs/critical_path.h"
#include "sim/jobs/job.h"
#include "sim/jobs/rank_ledger.h"
#include "sim/training/checkpoint/checkpoint.h"
#include "sim/training/memory/memory_ledger.h"
#include "sim/workload/task.h"

namespace netsim {

// What happened to one task of one rank. Plain data: a journal is an array of them.
struct JobRecord {
  enum class Kind : std::uint8_t {
    compute_begins,
    compute_ends,
    // The rank enters the operation, asks for circuits, copies to or from its host or has its CPUs compute.
    communication_begins,
    // The rank's part is done (a point-to-point sender's: acknowledged), or circuits are lit.
    communication_ends
  };
  // What let a task begin, at the time of the record.
  enum class Cause : std::uint8_t {
    arrival,         // of its job
    earliest_start,  // Task::not_before, or Task::pause
    task_ended       // the task of its rank whose end is the last record of it before this one
  };
  Kind kind = Kind::compute_begins;
  Cause cause = Cause::arrival;  // begins only
  std::uint32_t job = 0;
  std::uint32_t rank = 0;
  // Ends only: the rank's first iteration with a task that has not ended (TaskSource::open_iteration).
  std::uint32_t open_iteration = 0;
  // Ends only, in a job that can go on from a checkpoint: Resumable::passed_iterations, waits_for_storage.
  std::uint32_t passed_iterations = 0;
  bool waits_for_storage = false;
  Time time = 0;
  Time posted = 0;                  // ends only: the rank reached the task
  Time start = 0;                   // ends only: TaskRecord::start
  std::uint64_t communication = 0;  // communications only: the id
  Task task;
};
static_assert(std::is_trivially_copyable_v<JobRecord>);

// The message that a send or receive of `rank` stands for.
inline MessageKey message_of(std::uint32_t rank, const Task& task) {
  const bool sending = task.kind == TaskKind::send;
  return {sending ? rank : task.peer, sending ? task.peer : rank, task.tag, task.sequence};
}

class JobStatistics {
 public:
  // `source` is asked for groups and names, and at the beginning which ranks have anything to do. `job`: its
  // number in the run, for records.
  // `gpus`: by rank, for critical paths.
  JobStatistics(const TaskSource& source, std::uint32_t job, JobObserver observer,
                const std::vector<std::uint32_t>& gpus = {});

  // The time of all ranks starts here.
  void open(Time begin);
  // Records of one rank, and of the ranks of one operation, come in order of time. InputError where members
  // of an operation disagree.
  void apply(const JobRecord& record);
  // The rank does nothing from now on.
  void halt(std::uint32_t rank, Time now);
  // The job is over, whatever is left of it. `complete`: nothing of it has to be done again, so all its
  // iterations end. One that ranks were still in ends with the last of its tasks that has ended.
  void stop(Time now, bool complete);
  // Only where critical paths are asked for; in the order of what happened, before what it caused.
  void apply(const TransferRecord& record, std::span<const PortDelay> ports) {
    path_->released(record, ports);
  }

  // Every rank has ended all its tasks. False before open().
  bool done() const { return opened_ && ranks_left_ == 0; }
  bool opened() const { return opened_; }
  std::uint64_t tasks_done() const { return tasks_done_; }
  Time begin_time() const { return begin_; }
  Time end_time() const { return end_; }
  // Up to what a rank was told last where that is later: it may be ahead of the end of an iteration.
  std::vector<RankTimes> rank_times(Time until) const;
  // Of the iterations that all ranks have done, in order: the last end of a task of it or one before.
  const std::vector<Time>& iteration_ends() const { return iteration_ends_; }
  const std::vector<PassedIteration>& passed_iterations() const { return passed_; }
  Time storage_wait(Time until) const;
  const std::vector<RankTimes>& warm_up_times() const { return warm_up_times_; }
  const MemoryLedger* memory() const { return memory_ ? &*memory_ : nullptr; }
  // By iteration, where JobObserver::path asks for it; else empty.
  const std::vector<PathSummary>& paths() const { return paths_; }
  // Point-to-point: false for one that waits for its sender, or that the statistics do not have.
  bool sender_began(std::uint64_t communication) const;

 private:
  // A communication, or circuits that are asked for, from its first member's start to its last member's end.
  struct Operation {
    std::uint64_t id = 0;
    CollectiveKind kind = CollectiveKind::all_reduce;
    Stream stream = Stream::tp;
    std::uint32_t name = 0;
    std::uint32_t ranks = 0, first_rank = 0;
    std::uint32_t finished = 0;  // members
    std::uint32_t opener = 0;    // the rank that came first,
    Task task;                   // and its task, with which the others have to agree
    Time first_start = 0, last_start = 0;
    // Point-to-point only.
    MessageKey message;
    Time sender_start = kNever;
    Time delivered = kNever;
  };

  void count_memory(const JobRecord& record);
  void begin_communication(const JobRecord& record);
  void end_communication(const JobRecord& record);
  Operation& join(const JobRecord& record);
  Operation describe(const JobRecord& record) const;
  void require_agreement(const Operation& operation, const JobRecord& record) const;
  void deliver(Operation& operation, Time now);
  void report(const Operation& operation, Time end) const;
  void end_task(const JobRecord& record, Time end);
  void note_iteration(const JobRecord& record, Time end);
  void note_passed(const JobRecord& record);
  void note_storage(std::uint32_t rank, bool waits, Time now);
  void close_iterations(Time now);
  void close_iteration(Time now);

  const TaskSource& source_;
  std::uint32_t job_;
  JobObserver observer_;
  std::vector<RankLedger> ledgers_;    // by rank
  std::vector<Operation> operations_;  // arena
  std::vector<std::uint32_t> free_operations_;
  std::unordered_map<std::uint64_t, std::uint32_t> live_;  // communication id to operation; looked up only
  std::vector<std::uint32_t> open_iteration_;              // by rank
  std::vector<std::uint32_t> ranks_in_;                    // by iteration: ranks whose first open one it is
  std::vector<Time> last_ends_;       // by iteration: the last end of a task of it so far
  std::vector<Time> iteration_ends_;  // of those that are done
  // How long a rank has waited for storage, and since when it does so now.
  struct StorageWait {
    Time waited = 0, since = kNever;
    Time until(Time now) const { return waited + (since == kNever ? 0 : now - since); }
  };
  std::vector<StorageWait> storage_waits_;  // by rank
  const Resumable* resumable_;              // the source; null: it cannot go on from a checkpoint
  std::vector<PassedIteration> passed_;     // by iteration, from the first rank that passed it
  std::vector<std::uint32_t> passed_by_;    // by rank: iterations that it has passed
  std::uint32_t ranks_left_ = 0;            // with tasks that have not ended
  std::uint64_t tasks_done_ = 0;
  bool opened_ = false;
  std::optional<CriticalPath> path_;  // if somebody wants to know
  std::vector<PathSummary> paths_;    // by iteration
  std::optional<MemoryLedger> memory_;
  std::vector<RankTimes> warm_up_times_;
  Time begin_ = 0, end_ = 0;
};

}  // namespace netsim
