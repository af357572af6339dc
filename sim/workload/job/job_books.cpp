#include "sim/workload/job/job_books.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {
namespace {

CollectiveKind kind_of(const Task& task) {
  return is_point_to_point(task) ? CollectiveKind::point_to_point : task.collective;
}

// Nothing in it for a collective.
MessageKey message_of(const JobRecord& record) {
  if (!is_point_to_point(record.task)) return {};
  return message_of(record.rank, record.task, record.number);
}

}  // namespace

JobBooks::JobBooks(const TaskSource& source, Job::Observer observer)
    : source_(source),
      observer_(std::move(observer)),
      ledgers_(source.ranks()),
      iteration_ends_(source.iterations(), 0) {
  for (std::uint32_t rank = 0; rank < ledgers_.size(); ++rank) tasks_total_ += source_.task_count(rank);
}

void JobBooks::open(Time begin) {
  begin_ = end_ = begin;
  for (RankLedger& ledger : ledgers_) ledger.open(begin);
}

void JobBooks::apply(const JobRecord& record) {
  switch (record.kind) {
    case JobRecord::Kind::compute_begins:
      ledgers_[record.rank].compute_begins(record.time);
      break;
    case JobRecord::Kind::compute_ends:
      ledgers_[record.rank].compute_ends(record.time);
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

// A collective is in flight at a rank from the rank's own start; a point-to-point operation at both ends from
// the sender's, and the receiver's books have the sender's kind; tables its name.
void JobBooks::begin_communication(const JobRecord& record) {
  Operation& operation = join(record);
  if (record.task.kind == TaskKind::collective) {
    ledgers_[record.rank].communication_begins(record.task.stream, record.time);
  } else if (record.task.kind == TaskKind::send) {
    operation.stream = record.task.stream;
    operation.name = record.task.name;
    operation.sender_start = record.time;
    ledgers_[operation.message.sender].communication_begins(operation.stream, record.time);
    ledgers_[operation.message.receiver].communication_begins(operation.stream, record.time);
  }
}

// The operation of the record, opened by its first member.
JobBooks::Operation& JobBooks::join(const JobRecord& record) {
  const auto [it, first] = live_.try_emplace(record.communication, 0);
  if (first && free_operations_.empty()) {
    free_operations_.push_back(static_cast<std::uint32_t>(operations_.size()));
    operations_.emplace_back();
  }
  if (first) {
    it->second = free_operations_.back();
    free_operations_.pop_back();
    operations_[it->second] = describe(record);
  }
  Operation& operation = operations_[it->second];
  NETSIM_CHECK(operation.message == message_of(record),
               fmt::format("two operations have the id {:#x}", record.communication));
  if (!first) require_agreement(operation, record);
  operation.last_start = record.time;
  return operation;
}

JobBooks::Operation JobBooks::describe(const JobRecord& record) const {
  const Task& task = record.task;
  Operation operation;
  operation.id = record.communication;
  operation.kind = kind_of(task);
  operation.stream = task.stream;
  operation.raw = task.raw;
  operation.name = task.name;
  operation.bytes = task.bytes;
  operation.first_start = record.time;
  operation.message = message_of(record);
  if (is_point_to_point(task)) {
    operation.ranks = 2;
    operation.first_rank = operation.message.sender;
  } else {
    const std::vector<std::uint32_t>& group = source_.group(task.group);
    operation.root = task.root;
    operation.ranks = static_cast<std::uint32_t>(group.size());
    operation.first_rank = group.front();
  }
  return operation;
}

// What the first member said must be what the others say: else the executor would wait for ever, or worse.
void JobBooks::require_agreement(const Operation& operation, const JobRecord& record) const {
  const Task& task = record.task;
  const auto refuse = [&](const std::string& message) { refuse_task(source_, record.rank, task, message); };
  if (operation.bytes != task.bytes) {
    refuse(fmt::format("{} bytes, but {} at another rank", task.bytes, operation.bytes));
  }
  if (operation.raw != task.raw) refuse("raw at one end only");
  if (is_point_to_point(task)) return;
  if (operation.kind != task.collective) {
    refuse(fmt::format("{}, but {} at another rank", to_string(task.collective), to_string(operation.kind)));
  }
  if (operation.root != task.root) {
    refuse(fmt::format("root {}, but {} at another rank", task.root, operation.root));
  }
}

void JobBooks::end_communication(const JobRecord& record) {
  const auto it = live_.find(record.communication);
  NETSIM_CHECK(it != live_.end(), fmt::format("communication {:#x} ends at rank {}, but never began",
                                              record.communication, record.rank));
  Operation& operation = operations_[it->second];
  Time end = record.time;
  if (operation.kind == CollectiveKind::point_to_point) {
    deliver(operation, record.time);
    end = operation.delivered;
  } else {
    ledgers_[record.rank].communication_ends(record.task.stream, end);
  }
  if (++operation.finished == operation.ranks) {
    report(operation, end);
    free_operations_.push_back(it->second);
    live_.erase(it);
  }
  end_task(record, end);
}

// The first end to report knows best: a receiver that waited is told at the delivery, a sender a little
// later.
void JobBooks::deliver(Operation& operation, Time now) {
  if (operation.delivered != kNever) return;
  operation.delivered = now;
  ledgers_[operation.message.sender].communication_ends(operation.stream, now);
  ledgers_[operation.message.receiver].communication_ends(operation.stream, now);
}

void JobBooks::report(const Operation& operation, Time end) const {
  if (!observer_.communication) return;
  CommunicationRecord record;
  record.id = operation.id;
  record.kind = operation.kind;
  record.stream = operation.stream;
  record.name = operation.name;
  record.ranks = operation.ranks;
  record.first_rank = operation.first_rank;
  record.bytes = operation.bytes;
  record.first_start = operation.first_start;
  record.last_start = operation.last_start;
  record.end = end;
  observer_.communication(record);
}

void JobBooks::end_task(const JobRecord& record, Time end) {
  ++tasks_done_;
  end_ = std::max(end_, end);
  Time& iteration_end = iteration_ends_[record.task.iteration];
  iteration_end = std::max(iteration_end, end);
  if (observer_.task)
    observer_.task({record.rank, record.task, record.communication, record.posted, record.start, end});
}

std::vector<RankTimes> JobBooks::rank_times(Time until) const {
  std::vector<RankTimes> times;
  times.reserve(ledgers_.size());
  for (const RankLedger& ledger : ledgers_) times.push_back(ledger.times(until));
  return times;
}

bool JobBooks::sender_began(std::uint64_t communication) const {
  const auto it = live_.find(communication);
  return it != live_.end() && operations_[it->second].sender_start != kNever;
}

}  // namespace netsim
