// Defragmentation: moves running jobs so that free GPUs come together where a job can use them. All job
// schedulers with pauses have it as their parameter `defragment`.
//
// It acts for the first job that waits, if enough GPUs are free but the job's placement cannot use them. It
// pauses the cheapest jobs without which the job fits, and which find GPUs beside it afterwards. When all of
// them are paused, the job starts, and they go on elsewhere.
#pragma once

#include <optional>
#include <vector>

#include "sim/scheduling/job/job_scheduler.h"

namespace netsim {

class Defragmentation {
 public:
  // At most so many sets of jobs are tried for a decision, the cheapest first.
  static constexpr std::size_t kMostSets = 1000;

  explicit Defragmentation(const MoveParameters& p) : enabled_(p.defragment), move_(p.move) {}

  // Must be called first in each call of the scheduler. Returns true while jobs are on the way to a pause;
  // the scheduler then starts and pauses nothing. Jobs that it starts are removed from `order`, which is the
  // scheduler's order of all jobs.
  //
  // Moves begin only if they gain GPU time. Without them the job would wait until running jobs have ended, by
  // what is known of their ends. With them it waits for the longest iteration of the moved jobs. Each of
  // these loses at most that of its own, and JobScheduler::move().
  bool decide(const JobSchedulerView& view, std::vector<const JobState*>& order, JobDecisions& decisions);

 private:
  // Moves: the job that is to start, and those that are paused for it, the one with the most ranks first.
  struct Moves {
    JobId job;
    std::vector<JobId> moved;
  };

  bool go_on(const JobSchedulerView& view, std::vector<const JobState*>& order, JobDecisions& decisions);
  std::optional<Moves> plan(const JobState& job, const JobSchedulerView& view,
                            const JobDecisions& decisions) const;
  double cost_of(const JobState& job) const;
  bool gains(const JobState& job, double wait, const std::vector<const JobState*>& moved) const;

  bool enabled_;
  Time move_;
  std::optional<Moves> moves_;  // under way
};

}  // namespace netsim
