// Rules that job schedulers share: they start jobs in an order, with or without pauses of others.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/scheduling/job/job_scheduler.h"

namespace netsim {

// Starts the waiting jobs of `order` up to the first one that finds no free GPUs. With `backfill` later ones
// that fit start too.
void start_in_order(const std::vector<const JobState*>& order, bool backfill, JobDecisions& decisions);

// Lets the first jobs of `order` run that fit on the cluster by their number of GPUs. Running jobs that are
// not among them are paused, and those that wait start where free GPUs are found. A job that does not fit
// beside the ones before it is left out.
void run_first(const std::vector<const JobState*>& order, const ClusterState& cluster,
               JobDecisions& decisions);

// Lets the first jobs of `order` run: with `pauses` as run_first() does, otherwise as start_in_order() does
// with backfill.
void run_in_order(const std::vector<const JobState*>& order, bool pauses, const ClusterState& cluster,
                  JobDecisions& decisions);

// Returns the jobs sorted by `before`. Equal ones keep their order.
template <class Before>
std::vector<const JobState*> sorted_jobs(const JobSchedulerView& view, Before before) {
  std::vector<const JobState*> order;
  for (const JobState& job : view.jobs) order.push_back(&job);
  std::stable_sort(order.begin(), order.end(),
                   [&](const JobState* a, const JobState* b) { return before(*a, *b); });
  return order;
}

}  // namespace netsim
