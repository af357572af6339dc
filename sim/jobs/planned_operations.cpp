#include "sim/jobs/planned_operations.h"

#include <algorithm>

#include "sim/jobs/launch_check.h"
#include "sim/jobs/task_parts.h"

namespace netsim {
namespace {

std::optional<LaunchCounts> counts_of(const TaskSource& source, const TaskScheduling& scheduling) {
  LaunchCounts counts;
  for (RankId rank = 0; rank < source.ranks(); ++rank) {
    PlannedOperations operations(scheduling, rank);
    const bool known = source.for_each_task(rank, [&](const Task& task) {
      if (is_communication(task)) operations.add(task);
    });
    if (!known) return std::nullopt;
    counts.add(operations.counts());
  }
  return counts;
}

}  // namespace

std::span<const PlannedOperation> PlannedOperations::add(const Task& task) {
  const bool chosen = is_chosen_by_scheduler(task);
  if (chosen) ++counts_.launches;
  const std::uint32_t bucket =
      chosen && task.together == 1 ? scheduling_.tables.bucket(rank_, task.id) : kNoIndex;
  if (bucket != kNoIndex) return add_to_bucket(task, bucket);
  return cut(task, task.bytes());
}

std::span<const PlannedOperation> PlannedOperations::add_to_bucket(const Task& task, std::uint32_t number) {
  ++counts_.fused;
  const auto [it, begins] = buckets_.try_emplace({number, task.iteration});
  Bucket& bucket = it->second;
  if (begins) bucket.first = task;
  bucket.bytes += task.bytes();
  if (++bucket.tasks < scheduling_.tables.bucket_size(number)) return {};
  const Bucket whole = bucket;
  buckets_.erase(it);
  return cut(whole.first, whole.bytes);
}

std::span<const PlannedOperation> PlannedOperations::cut(const Task& task, Bytes bytes) {
  for (PlannedOperation& operation : operations_) operation.task = task;
  const bool scheduled = is_chosen_by_scheduler(task) || task.kind() == TaskKind::receive;
  const Bytes part = scheduled && bytes > 0 ? part_size(*scheduling_.scheduler, task, bytes) : 0;
  if (part == 0) {
    operations_[0].count = 1;
    return {operations_.data(), 1};
  }
  const Bytes last = bytes % part;
  operations_[0].task.payload()->bytes = part;
  operations_[0].count = static_cast<std::uint64_t>(bytes / part);
  operations_[1].task.payload()->bytes = last;
  operations_[1].count = last > 0 ? 1 : 0;
  const std::uint64_t parts = operations_[0].count + operations_[1].count;
  if (task.kind() != TaskKind::receive) {
    counts_.parts += parts;
    counts_.cut += parts > 1 ? 1 : 0;
  }
  return {operations_.data(), last > 0 ? std::size_t{2} : 1};
}

std::optional<PlannedLaunches> planned_launches(const std::string& job, const TaskSource& source,
                                                const TaskScheduling* scheduling) {
  if (scheduling == nullptr) return std::nullopt;
  return PlannedLaunches{job, scheduling->name, scheduling->agreed, is_checked(source, *scheduling),
                         counts_of(source, *scheduling)};
}

}  // namespace netsim
