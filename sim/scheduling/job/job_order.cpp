#include "sim/scheduling/job/job_order.h"

#include <algorithm>

namespace netsim {

std::uint32_t iterations_left(const JobState& job) {
  return job.iterations > job.iterations_done ? job.iterations - job.iterations_done : 1;
}

double seconds_left(const JobState& job) {
  const double each = job.iteration_time > 0 ? to_seconds(job.iteration_time) : 1;
  return each * iterations_left(job);
}

void start_in_order(const std::vector<const JobState*>& order, bool backfill, JobDecisions& decisions) {
  for (const JobState* job : order) {
    if (job->waits() && !decisions.start(job->job) && !backfill) return;
  }
}

void run_first(const std::vector<const JobState*>& order, const ClusterState& cluster,
               JobDecisions& decisions) {
  std::uint32_t held = 0;
  for (const JobState* job : order) held += job->waits() ? 0 : job->ranks;
  std::uint32_t left = cluster.free + held;
  std::vector<const JobState*> starts;
  for (const JobState* job : order) {
    const bool runs = job->ranks <= left;
    if (runs) left -= job->ranks;
    if (runs && job->waits()) starts.push_back(job);
    if (!runs && job->phase == JobState::Phase::running) decisions.pause(job->job);
  }
  start_in_order(starts, true, decisions);
}

void run_in_order(const std::vector<const JobState*>& order, bool pauses, const ClusterState& cluster,
                  JobDecisions& decisions) {
  if (pauses) {
    run_first(order, cluster, decisions);
  } else {
    start_in_order(order, true, decisions);
  }
}

}  // namespace netsim
