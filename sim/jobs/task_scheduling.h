// TaskScheduling: the task scheduler of a job, and what it has decided before the job begins.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/index.h"
#include "sim/core/units.h"
#include "sim/scheduling/task/task_scheduler.h"

namespace netsim {

// LaunchTables: a LaunchPlan by rank and position of the task in its rank's iteration.
class LaunchTables {
 public:
  // `sizes` has the number of tasks of each rank in an iteration.
  explicit LaunchTables(const std::vector<std::uint32_t>& sizes = {});

  void set_order(RankId rank, std::uint32_t position, std::uint32_t order);
  void set_links(RankId rank, std::uint32_t position, std::uint8_t links);
  void set_bucket(RankId rank, std::uint32_t position, std::uint32_t bucket);
  // Sets the number of tasks of a rank in the bucket.
  void set_bucket_size(std::uint32_t bucket, std::uint32_t tasks);
  // Sets that the task is number `number` of a sequence.
  void set_turn(RankId rank, std::uint32_t position, std::uint32_t sequence, std::uint32_t number);
  void set_sequence_size(std::uint32_t sequence, std::uint32_t tasks);
  // Sets that the task at `position` is launched only when the one at `until` has ended.
  void add_hold(RankId rank, std::uint32_t position, std::uint32_t until);

  // Turn: the place of a task in a sequence over all iterations. It waits until that many were launched.
  struct Turn {
    std::uint32_t sequence = kNoIndex;  // kNoIndex: it is in none
    std::uint64_t number = 0;
  };
  Turn turn(RankId rank, TaskId task) const;
  // Returns the positions of the tasks of its iteration for whose end the task is held.
  std::span<const std::uint32_t> holds(RankId rank, TaskId task) const;
  // Returns whether another task of the rank is held until this one ends.
  bool is_awaited(RankId rank, TaskId task) const {
    return !awaited_.empty() && awaited_.contains(entry(rank, task));
  }
  std::uint32_t position(RankId rank, TaskId task) const {
    return static_cast<std::uint32_t>(entry(rank, task) - first_[rank]);
  }
  std::uint64_t iteration(RankId rank, TaskId task) const {
    return task / (first_[rank + std::size_t{1}] - first_[rank]);
  }

  // Returns the place of a task in the order of need, the least first. Tasks of an earlier iteration precede.
  std::uint64_t order(RankId rank, TaskId task) const;
  // Returns the number of the links that a task takes (LaunchPlan::links).
  std::uint8_t links(RankId rank, TaskId task) const {
    return links_.empty() ? 0 : links_[entry(rank, task)];
  }
  // Returns the bucket with which the task is launched, or kNoIndex.
  std::uint32_t bucket(RankId rank, TaskId task) const {
    return buckets_.empty() ? kNoIndex : buckets_[entry(rank, task)];
  }
  std::uint32_t bucket_size(std::uint32_t bucket) const { return bucket_sizes_[bucket]; }

 private:
  struct Place {
    std::uint32_t sequence = kNoIndex, number = 0;
  };
  std::size_t entry(RankId rank, TaskId task) const {
    return first_[rank] + task % (first_[rank + std::size_t{1}] - first_[rank]);
  }
  std::vector<std::size_t> first_;      // by rank: its first entry; one more at the end
  std::vector<std::uint32_t> orders_;   // empty: the order of the program
  std::vector<std::uint8_t> links_;     // empty: 0 for all
  std::vector<std::uint32_t> buckets_;  // empty: nothing is fused
  std::vector<std::uint32_t> bucket_sizes_;
  std::vector<Place> places_;  // in sequences; empty: there are none
  std::vector<std::uint32_t> sequence_sizes_;
  std::unordered_map<std::size_t, std::vector<std::uint32_t>> holds_;  // by entry; looked up only
  std::unordered_set<std::size_t> awaited_;                            // entries; looked up only
};

// TaskScheduling: how the communications of one job are launched.
struct TaskScheduling {
  std::shared_ptr<const TaskScheduler> scheduler;
  std::string name;    // kind of the scheduler, for reports
  bool agreed = true;  // scheduling.order
  Time latency = 0;    // scheduling.latency, above 0 where `agreed` is set
  LaunchTables tables;
};

// LaunchCounts: what a task scheduler did with some communications, summed over ranks.
struct LaunchCounts {
  std::uint64_t launches = 0;   // communications launched
  std::uint64_t parts = 0;      // operations launched; `launches` where nothing was cut or fused
  std::uint64_t cut = 0;        // communications that were launched in several parts
  std::uint64_t fused = 0;      // communications that were launched with others as one
  std::uint64_t reordered = 0;  // launches while a candidate that comes earlier in the program waited
  std::uint64_t held = 0;       // communications that were ready before their first part was launched
  Time held_by_scheduler = 0;   // time from there to the launch, where the rank itself decided
  Time held_by_agreement = 0;   // the same, where another rank decided
  Time longest_held = 0;        // the longest of these times

  void add(const LaunchCounts& other) {
    launches += other.launches;
    parts += other.parts;
    cut += other.cut;
    fused += other.fused;
    reordered += other.reordered;
    held += other.held;
    held_by_scheduler += other.held_by_scheduler;
    held_by_agreement += other.held_by_agreement;
    longest_held = std::max(longest_held, other.longest_held);
  }
};

// SchedulingSummary: what a task scheduler did in a job.
struct SchedulingSummary : LaunchCounts {
  std::string scheduler;                        // kind
  std::map<std::string, LaunchCounts> by_name;  // by the name of the communications
};

}  // namespace netsim
