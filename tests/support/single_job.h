// SingleJob: one job on an executor, with devices of its own, for tests: rank r on GPU gpus[r].
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/jobs/job_set.h"

namespace netsim::test {

class SingleJob {
 public:
  static constexpr std::uint32_t kMultiprocessors = 10;  // of each GPU
  // GPU g runs in loops[set_of_gpu[g]]. durations[i] is the time of works()[i]. Origins from first_origin on
  // are taken.
  SingleJob(std::vector<EventLoop*> loops, std::vector<std::uint32_t> set_of_gpu, Executor& executor,
            TaskSource& source, std::vector<GpuId> gpus, std::vector<Time> durations,
            std::uint32_t first_origin, JobObserver observer = {},
            std::shared_ptr<const TaskScheduling> scheduling = nullptr, const GpuParameters& parameters = {},
            AnnounceArrival announce = {}, CircuitControl* circuits = nullptr)
      : times_(std::move(durations)),
        devices_(loops, set_of_gpu, parameters, first_origin, {},
                 std::vector<std::uint32_t>(set_of_gpu.size(), kMultiprocessors)),
        jobs_(loops, set_of_gpu, executor, devices_,
              first_origin + static_cast<std::uint32_t>(set_of_gpu.size()), std::move(observer)) {
    jobs_.set_rendezvous(std::move(announce), circuits);
    jobs_.set_decisions([this](std::uint32_t, Time time, Origin&, const LaunchDecision& decision) {
      decisions_.emplace_back(time, decision);
    });
    jobs_.add({source.job_name(), &source, &times_, std::move(gpus), 0, 0, std::move(scheduling)});
  }
  // All GPUs in one set.
  SingleJob(EventLoop& loop, Executor& executor, TaskSource& source, std::vector<GpuId> gpus,
            std::vector<Time> durations, std::uint32_t first_origin, JobObserver observer = {},
            std::shared_ptr<const TaskScheduling> scheduling = nullptr, const GpuParameters& parameters = {})
      : SingleJob({&loop}, std::vector<std::uint32_t>(1 + *std::max_element(gpus.begin(), gpus.end()), 0),
                  executor, source, gpus, std::move(durations), first_origin, std::move(observer),
                  std::move(scheduling), parameters) {}

  JobSet& jobs() { return jobs_; }
  void start() { jobs_.start(0); }
  // Runs all events, and hands the decisions of task schedulers to the job at their times. They are announced
  // in order of time, because the latency is the same for all. All GPUs must be in one set.
  void run(EventLoop& loop) {
    while (true) {
      const Time due = decisions_.empty() ? kNever : decisions_.front().first;
      if (loop.next_time() < due) {
        loop.run_some(1);
        continue;
      }
      if (due == kNever) return;
      const LaunchDecision decision = decisions_.front().second;
      decisions_.pop_front();
      loop.advance(due);
      jobs_.decided(decision);
    }
  }
  const Job* operator->() const { return &jobs_.job(0); }
  std::vector<std::string> waiting(std::size_t limit) const { return jobs_.waiting(limit); }

 private:
  std::deque<std::pair<Time, LaunchDecision>> decisions_;
  WorkDurations times_;
  ComputeDevices devices_;
  JobSet jobs_;
};

}  // namespace netsim::test
