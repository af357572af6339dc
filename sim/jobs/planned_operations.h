// PlannedOperations: the operations of the executor into which a task scheduler turns the communications of a
// rank, known before the run. Predictions use them. When they are launched is not known.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "sim/core/ids.h"
#include "sim/jobs/task_scheduling.h"
#include "sim/workload/task_source.h"

namespace netsim {

// PlannedOperation: equal operations of a communication, or of a bucket of fused ones.
struct PlannedOperation {
  Task task;                // the communication, or the first one of its bucket, with the operation's bytes
  std::uint64_t count = 0;  // number of such operations
};

class PlannedOperations {
 public:
  // `scheduling` must outlive this.
  PlannedOperations(const TaskScheduling& scheduling, RankId rank) : scheduling_(scheduling), rank_(rank) {}

  // Takes the next communication of the rank, in program order. Returns the operations that are complete with
  // it, valid until the next call: none while others of its bucket are to come.
  std::span<const PlannedOperation> add(const Task& task);
  // Returns what add() has taken so far, counted as SchedulingSummary does: without receives.
  const LaunchCounts& counts() const { return counts_; }

 private:
  struct Bucket {
    Task first;
    Bytes bytes = 0;
    std::uint32_t tasks = 0;
  };
  std::span<const PlannedOperation> add_to_bucket(const Task& task, std::uint32_t number);
  std::span<const PlannedOperation> cut(const Task& task, Bytes bytes);

  const TaskScheduling& scheduling_;
  RankId rank_;
  // Buckets of which tasks are to come, by number and iteration.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Bucket> buckets_;
  std::array<PlannedOperation, 2> operations_;  // the parts of one size, and the last one
  LaunchCounts counts_;
};

// PlannedLaunches: what is known of a job's launches before the run.
struct PlannedLaunches {
  std::string job, scheduler;
  bool agreed = true;   // scheduling.order
  bool checked = true;  // one iteration was played to find tasks that wait for one another (launch_check.h)
  // The launches, parts, cut and fused communications of all ranks and iterations. Empty where only
  // simulating the job shows its tasks.
  std::optional<LaunchCounts> counts;
};

// Returns what the job's task scheduler will launch, or nothing without a scheduler.
std::optional<PlannedLaunches> planned_launches(const std::string& job, const TaskSource& source,
                                                const TaskScheduling* scheduling);

}  // namespace netsim
