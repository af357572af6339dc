#include "sim/jobs/job_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "sim/collectives/own_algorithm.h"
#include "sim/core/errors.h"

namespace netsim {
namespace {

CollectiveKind kind_of(const Task& task) {
  return task.kind() == TaskKind::collective ? task.collective().collective : CollectiveKind::point_to_point;
}

// Calls `refuse` with what a member asks and what the first member asked, where they disagree.
template <class Refuse>
void require_collective_agreement(const CollectiveTask& first, const CollectiveTask& task,
                                  const Refuse& refuse) {
  if (first.collective != task.collective) refuse(to_string(task.collective), to_string(first.collective));
  if (first.counts != task.counts && *first.counts != *task.counts)
    refuse("these counts of the blocks", "others");
  if (first.grouped != task.grouped) refuse("in one call with these collectives", "in another call");
  if (first.algorithm != task.algorithm) {
    const auto by = [](const CollectiveTask& of) {
      return "by " +
             (of.algorithm == nullptr ? std::string("the configuration's algorithm") : of.algorithm->name);
    };
    refuse(by(task), by(first));
  }
  if (first.root != task.root) refuse(fmt::format("root {}", task.root), fmt::format("{}", first.root));
}

// Returns whether the task leaves the GPU and its links idle: it runs on a thread of the rank's process.
bool leaves_gpu_idle(const Task& task) { return task.kind() == TaskKind::host_thread; }

// Returns the record's message key; an empty one for a collective.
MessageKey message_of(const JobRecord& record) {
  if (!is_point_to_point(record.task)) return {};
  return message_of(record.rank, record.task);
}

// Returns the times of all ledgers up to `until`, or to a ledger's last change if that is later.
std::vector<RankTimes> times_of(const std::vector<RankLedger>& ledgers, Time until) {
  std::vector<RankTimes> times;
  times.reserve(ledgers.size());
  for (const RankLedger& ledger : ledgers) times.push_back(ledger.times(std::max(until, ledger.told())));
  return times;
}

}  // namespace

JobStatistics::JobStatistics(const TaskSource& source, JobId job, JobObserver observer,
                             const std::vector<GpuId>& gpus, bool at_begin)
    : source_(source),
      job_(job),
      observer_(std::move(observer)),
      resumable_(dynamic_cast<const Resumable*>(&source)) {
  if (!at_begin) prepare();
  if (observer_.path) path_.emplace(gpus);
  if (const MemoryPlan* memory = source.memory(); memory != nullptr) memory_.emplace(*memory, source.ranks());
}

void JobStatistics::prepare() {
  const std::uint32_t ranks = source_.ranks();
  ledgers_.resize(ranks);
  open_iteration_.assign(ranks, 0);
  storage_waits_.resize(ranks);
  passed_by_.assign(ranks, 0);
}

void JobStatistics::release() {
  NETSIM_CHECK(done(), "a job that is not done needs its statistics");
  final_times_ = rank_times(end_);
  path_.reset();
  const auto free = [](auto&... members) { ((members = std::decay_t<decltype(members)>()), ...); };
  free(ledgers_, warm_up_ledgers_, operations_, free_operations_, live_, open_iteration_, ranks_in_,
       last_ends_, storage_waits_, passed_by_);
}

void JobStatistics::open(Time begin, std::uint32_t cut_streams) {
  opened_ = true;
  begin_ = end_ = begin;
  if (source_.warm_up() > 0) warm_up_ledgers_.resize(ledgers_.size());
  for (RankLedger& ledger : ledgers_) ledger.open(begin, cut_streams);
  for (RankLedger& ledger : warm_up_ledgers_) ledger.open(begin);
  if (path_) path_->open(begin);
  if (memory_) memory_->open(begin);
  for (RankId rank = 0; memory_ && observer_.memory && rank < memory_->ranks(); ++rank) {
    if (memory_->is_first_of_role(rank)) observer_.memory({job_, rank, begin, memory_->of(rank).now});
  }
  for (RankId rank = 0; resumable_ != nullptr && rank < source_.ranks(); ++rank)
    note_storage(rank, resumable_->waits_for_storage(rank), begin);
  ranks_in_.assign(1, 0);
  ranks_left_ = 0;
  for (RankId rank = 0; rank < open_iteration_.size(); ++rank) {
    open_iteration_[rank] = source_.open_iteration(rank);
    if (open_iteration_[rank] == TaskSource::kNoIteration) continue;
    ++ranks_left_;
    ++ranks_in_[0];
    open_iteration_[rank] = 0;
  }
}

// Changes the ledgers of the rank that count the tasks of this iteration.
template <class Change>
void JobStatistics::change_ledgers(RankId rank, std::uint32_t iteration, const Change& change) {
  change(ledgers_[rank]);
  if (!warm_up_ledgers_.empty() && iteration < source_.warm_up()) change(warm_up_ledgers_[rank]);
}

void JobStatistics::halt(RankId rank, Time now) {
  change_ledgers(rank, 0, [&](RankLedger& ledger) { ledger.halt(now); });
  note_storage(rank, false, now);
}

void JobStatistics::stop(Time now, bool complete) {
  for (RankId rank = 0; rank < ledgers_.size(); ++rank) halt(rank, now);
  ranks_left_ = 0;
  end_ = std::max(end_, now);
  if (!complete) return;
  const std::size_t all = source_.iterations().value_or(0);
  last_ends_.resize(std::max(last_ends_.size(), all), 0);
  while (iteration_ends_.size() < all) close_iteration(now);
}

void JobStatistics::count_memory(const JobRecord& record) {
  const bool begins =
      record.kind == JobRecord::Kind::compute_begins || record.kind == JobRecord::Kind::communication_begins;
  if (!memory_->apply(record.rank, record.task, begins, record.time)) return;
  if (observer_.memory && memory_->is_first_of_role(record.rank))
    observer_.memory({job_, record.rank, record.time, memory_->of(record.rank).now});
}

void JobStatistics::apply(const JobRecord& record) {
  if (memory_) count_memory(record);
  switch (record.kind) {
    case JobRecord::Kind::compute_begins:
      change_ledgers(record.rank, record.task.iteration,
                     [&](RankLedger& ledger) { ledger.compute_begins(record.time); });
      if (path_) path_->begins(record);
      break;
    case JobRecord::Kind::compute_ends:
      change_ledgers(record.rank, record.task.iteration,
                     [&](RankLedger& ledger) { ledger.compute_ends(record.time); });
      end_task(record, record.time);
      break;
    case JobRecord::Kind::communication_begins:
      begin_communication(record);
      break;
    case JobRecord::Kind::communication_ends:
      end_communication(record);
      break;
  }
}

// A collective or circuit request is in flight at a rank from the rank's own start. A point-to-point
// operation is in flight at both ends from the sender's start. The receiver's statistics count it under the
// sender's stream; tables use its name.
//
// A task between a rank and its host concerns no other rank.
void JobStatistics::begin_communication(const JobRecord& record) {
  const auto begin = [&](RankLedger& ledger) {
    ledger.communication_begins(record.task.stream, record.time);
  };
  if (is_of_host(record.task)) {
    if (!leaves_gpu_idle(record.task)) change_ledgers(record.rank, record.task.iteration, begin);
    if (path_) path_->begins(record);
    return;
  }
  if (record.operation != record.communication && record.first_part) {
    Operation& whole = join(record, record.communication);
    if (record.task.kind() == TaskKind::send) begin_message(record, whole);
  }
  Operation& operation = join(record, record.operation);
  if (path_) path_->begins(record);
  if (has_group(record.task)) {
    change_ledgers(record.rank, record.task.iteration, begin);
  } else if (record.task.kind() == TaskKind::send) {
    begin_message(record, operation);
    change_ledgers(operation.message.sender, operation.iteration, begin);
    change_ledgers(operation.message.receiver, operation.iteration, begin);
  }
}

// Enters the start of a message, or of a part of it, at its sender.
void JobStatistics::begin_message(const JobRecord& record, Operation& part) {
  part.stream = record.task.stream;
  part.name = record.task.name;
  part.iteration = record.task.iteration;
  part.sender_start = record.time;
}

// Returns operation `id` of the record: the communication or a part of it. Its first member opens it.
JobStatistics::Operation& JobStatistics::join(const JobRecord& record, std::uint64_t id) {
  const auto [it, first] = live_.try_emplace(id, 0);
  if (first && free_operations_.empty()) {
    free_operations_.push_back(static_cast<std::uint32_t>(operations_.size()));
    operations_.emplace_back();
  }
  if (first) {
    it->second = free_operations_.back();
    free_operations_.pop_back();
    operations_[it->second] = describe(record, id);
  }
  Operation& operation = operations_[it->second];
  if (operation.message != message_of(record)) {
    refuse_task(source_, record.rank, record.task,
                "another message in progress has the same number (communication_id.h): too many messages at "
                "once for these ranks and tags; use fewer ranks or smaller tags");
  }
  if (!first) require_agreement(operation, record);
  operation.receiver_started |= record.task.kind() == TaskKind::receive;
  operation.last_start = record.time;
  return operation;
}

JobStatistics::Operation JobStatistics::describe(const JobRecord& record, std::uint64_t id) const {
  const Task& task = record.task;
  Operation operation;
  operation.id = id;
  operation.parts = record.parts;
  operation.kind = kind_of(task);
  operation.stream = task.stream;
  operation.name = task.name;
  operation.opener = record.rank;
  operation.task = task;
  operation.first_start = record.time;
  operation.message = message_of(record);
  if (is_point_to_point(task)) {
    operation.ranks = 2;
    operation.first_rank = operation.message.sender;
  } else {
    const std::vector<RankId>& group = source_.group(task.group());
    operation.ranks = static_cast<std::uint32_t>(group.size());
    operation.first_rank = group.front();
  }
  return operation;
}

// Checks that the members' tasks agree with the first member's. Otherwise the executor could wait for ever.
void JobStatistics::require_agreement(const Operation& operation, const JobRecord& record) const {
  const Task &first = operation.task, &task = record.task;
  const auto refuse = [&](const std::string& here, const std::string& there) {
    refuse_task(source_, record.rank, task,
                fmt::format("{}, but {} at {}", here, there, task_label(source_, operation.opener, first)));
  };
  if (has_group(task) && first.kind() != task.kind()) refuse(to_string(task.kind()), to_string(first.kind()));
  if (first.bytes() != task.bytes())
    refuse(fmt::format("{} bytes", task.bytes()), fmt::format("{}", first.bytes()));
  if (is_raw(first) != is_raw(task))
    refuse(is_raw(task) ? "raw" : "not raw", is_raw(first) ? "raw" : "not raw");
  if (task.kind() == TaskKind::collective)
    require_collective_agreement(first.collective(), task.collective(), refuse);
  if (task.kind() != TaskKind::circuits || first.circuits().circuits == task.circuits().circuits) return;
  refuse("circuits '" + source_.circuits()[task.circuits().circuits].name + "'",
         "'" + source_.circuits()[first.circuits().circuits].name + "'");
}

void JobStatistics::end_communication(const JobRecord& record) {
  const auto end_at_rank = [&](RankLedger& ledger) {
    ledger.communication_ends(record.task.stream, record.time);
  };
  if (is_of_host(record.task)) {
    if (!leaves_gpu_idle(record.task)) change_ledgers(record.rank, record.task.iteration, end_at_rank);
    end_task(record, record.time);
    if (path_) path_->is_over(record.communication);
    return;
  }
  Operation& operation = operation_of(record, record.operation);
  Time end = record.time;
  if (is_point_to_point(operation.task)) {
    if (!is_sent_early(operation, record)) {
      deliver(operation, record.time);
      end = operation.delivered;
    }
  } else {
    change_ledgers(record.rank, record.task.iteration, end_at_rank);
  }
  const bool over = leave(record, record.operation, end);
  if (record.last_part) {
    if (record.operation != record.communication) leave(record, record.communication, end);
    end_task(record, end);
  } else if (path_) {
    path_->ends(record, end);
  }
  if (over && path_) path_->is_over(record.operation);
}

JobStatistics::Operation& JobStatistics::operation_of(const JobRecord& record, std::uint64_t id) {
  const auto it = live_.find(id);
  NETSIM_CHECK(it != live_.end(),
               fmt::format("communication {:#x} ends at rank {}, but never began", id, record.rank));
  return operations_[it->second];
}

// A member has finished operation `id`. Returns whether it was the last one; then the operation is over.
bool JobStatistics::leave(const JobRecord& record, std::uint64_t id, Time end) {
  Operation& operation = operation_of(record, id);
  if (++operation.finished < operation.ranks) return false;
  if (id == record.communication) report(operation, end);
  const auto it = live_.find(id);
  free_operations_.push_back(it->second);
  live_.erase(it);
  return true;
}

// Returns whether the record is of the sender, and the receiver waits for the message. That is so only where
// a GPU of the receiver's host passes the message on over NVLink after the acknowledgement (SplitEndpoint).
bool JobStatistics::is_sent_early(const Operation& operation, const JobRecord& record) {
  return record.task.kind() == TaskKind::send && operation.receiver_started && operation.delivered == kNever;
}

// Ends the operation at both ranks at the first reported end. A waiting receiver reports at the delivery, the
// sender a little later, unless is_sent_early().
void JobStatistics::deliver(Operation& operation, Time now) {
  if (operation.delivered != kNever) return;
  operation.delivered = now;
  const auto end = [&](RankLedger& ledger) { ledger.communication_ends(operation.stream, now); };
  change_ledgers(operation.message.sender, operation.iteration, end);
  change_ledgers(operation.message.receiver, operation.iteration, end);
}

void JobStatistics::report(const Operation& operation, Time end) const {
  if (!observer_.communication || !is_communication(operation.task)) return;
  CommunicationRecord record;
  record.job = job_;
  record.id = operation.id;
  record.kind = operation.kind;
  record.stream = operation.stream;
  record.name = operation.name;
  record.ranks = operation.ranks;
  record.first_rank = operation.first_rank;
  record.bytes = operation.task.bytes();
  record.parts = operation.parts;
  if (operation.task.kind() == TaskKind::collective) {
    const CollectiveTask& call = operation.task.collective();
    record.group = call.group;
    record.root = call.root;
    record.counts = call.counts;
    record.grouped = call.grouped;
    record.series = call.series;
    record.algorithm = call.algorithm;
  }
  record.first_start = operation.first_start;
  record.last_start = operation.last_start;
  record.end = end;
  observer_.communication(record);
}

// In the tables a receive ends when its message arrives. One that begins later occupies its rank until the
// receive itself ends.
void JobStatistics::end_task(const JobRecord& record, Time end) {
  ++tasks_done_;
  const Time rank_end = record.task.kind() == TaskKind::receive ? std::max(end, record.time) : end;
  if (path_) path_->ends(record, rank_end);
  end_ = std::max(end_, rank_end);
  if (observer_.task)
    observer_.task({job_, record.rank, record.task, record.communication, record.posted, record.start, end,
                    record.parts});
  note_iteration(record, rank_end);
}

void JobStatistics::note_iteration(const JobRecord& record, Time end) {
  const std::size_t iteration = record.task.iteration;
  if (last_ends_.size() <= iteration) last_ends_.resize(iteration + 1, 0);
  last_ends_[iteration] = std::max(last_ends_[iteration], end);
  if (resumable_ != nullptr) {
    note_storage(record.rank, record.waits_for_storage, record.time);
    note_passed(record);
  }
  std::uint32_t& open = open_iteration_[record.rank];
  if (record.open_iteration == open) return;
  --ranks_in_[open];
  if (record.open_iteration == TaskSource::kNoIteration) {
    --ranks_left_;
  } else {
    if (ranks_in_.size() <= record.open_iteration)
      ranks_in_.resize(record.open_iteration + std::size_t{1}, 0);
    ++ranks_in_[record.open_iteration];
  }
  open = record.open_iteration;
  close_iterations(record.time);
}

void JobStatistics::note_passed(const JobRecord& record) {
  std::uint32_t& passed = passed_by_[record.rank];
  if (record.passed_iterations <= passed) return;
  const Time wait = storage_waits_[record.rank].until(record.time);
  if (passed_.size() < record.passed_iterations) passed_.resize(record.passed_iterations);
  for (; passed < record.passed_iterations; ++passed) {
    PassedIteration& iteration = passed_[passed];
    ++iteration.ranks;
    iteration.last = std::max(iteration.last, record.time);
    iteration.storage_wait = std::max(iteration.storage_wait, wait);
  }
}

void JobStatistics::note_storage(RankId rank, bool waits, Time now) {
  StorageWait& wait = storage_waits_[rank];
  if (waits == (wait.since != kNever)) return;
  wait.waited = wait.until(now);
  wait.since = waits ? now : kNever;
}

// Returns the longest time that any rank has waited for storage until then.
Time JobStatistics::storage_wait(Time until) const {
  Time longest = 0;
  for (const StorageWait& wait : storage_waits_) longest = std::max(longest, wait.until(until));
  return longest;
}

// Closes the iterations in which, and before which, no rank has an open task.
void JobStatistics::close_iterations(Time now) {
  while (iteration_ends_.size() < last_ends_.size()) {
    const std::size_t iteration = iteration_ends_.size();
    if (iteration < ranks_in_.size() && ranks_in_[iteration] > 0) return;
    close_iteration(now);
  }
}

// Closes the next iteration.
void JobStatistics::close_iteration(Time now) {
  const std::size_t iteration = iteration_ends_.size();
  const Time before = iteration > 0 ? iteration_ends_.back() : begin_;
  iteration_ends_.push_back(std::max(before, last_ends_[iteration]));
  if (path_) {
    paths_.push_back(path_->close_iteration(
        static_cast<std::uint32_t>(iteration), before, iteration_ends_.back(),
        [&](const PathStep& step) { observer_.path(job_, static_cast<std::uint32_t>(iteration), step); }));
  }
  if (iteration_ends_.size() == source_.warm_up()) end_warm_up(now);
  if (observer_.iteration)
    observer_.iteration(job_, static_cast<std::uint32_t>(iteration), iteration_ends_.back());
}

// Later iterations that have begun are not counted. So the warm-up's last iteration is counted like the last
// one of the job, which has no next one that hides its communication.
void JobStatistics::end_warm_up(Time now) {
  warm_up_times_ = times_of(warm_up_ledgers_, now);
  warm_up_ledgers_ = std::vector<RankLedger>();  // {} would keep its memory
}

std::vector<RankTimes> JobStatistics::rank_times(Time until) const {
  return final_times_.empty() ? times_of(ledgers_, until) : final_times_;
}

bool JobStatistics::sender_began(std::uint64_t communication) const {
  const auto it = live_.find(communication);
  return it != live_.end() && operations_[it->second].sender_start != kNever;
}

}  // namespace netsim
