// AdmissionQueue: the jobs that have arrived and wait for GPUs, and the rule by which they start.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>

#include "sim/core/ids.h"

namespace netsim {

// Jobs start strictly in the order of their arrivals: a job that does not fit holds back all later ones, even
// those that would fit. All functions are called between events.
class AdmissionQueue {
 public:
  // Starts a job if its placement finds free GPUs. Returns whether it did.
  using Start = std::function<bool(JobId job)>;

  // Adds a job that arrives now.
  void submit(JobId job) { jobs_.push_back(job); }
  // Starts the first jobs, up to the first one that does not fit. Called at each arrival, and at a scheduling
  // interval after GPUs became free.
  void admit(const Start& start) {
    while (!jobs_.empty() && start(jobs_.front())) jobs_.pop_front();
  }
  bool contains(JobId job) const { return std::find(jobs_.begin(), jobs_.end(), job) != jobs_.end(); }
  // Returns the waiting jobs in the order in which they will start.
  const std::deque<JobId>& jobs() const { return jobs_; }

 private:
  std::deque<JobId> jobs_;
};

}  // namespace netsim
