// SingleJob: one job on an executor, with devices of its own, for tests: rank r on GPU gpus[r].
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sim/jobs/job_set.h"

namespace netsim::test {

class SingleJob {
 public:
  static constexpr std::uint32_t kMultiprocessors = 10;  // of each GPU
  // GPU g runs in loops[set_of_gpu[g]]. durations[i] is the time of works()[i]. Origins from first_origin on
  // are taken.
  SingleJob(std::vector<EventLoop*> loops, std::vector<std::uint32_t> set_of_gpu, Executor& executor,
            TaskSource& source, std::vector<std::uint32_t> gpus, std::vector<Time> durations,
            std::uint32_t first_origin, JobObserver observer = {},
            std::shared_ptr<const TaskScheduling> scheduling = nullptr, const GpuParameters& parameters = {},
            AnnounceArrival announce = {}, CircuitControl* circuits = nullptr)
      : times_(std::move(durations)),
        devices_(loops, set_of_gpu, parameters, first_origin, {},
                 std::vector<std::uint32_t>(set_of_gpu.size(), kMultiprocessors)),
        jobs_(loops, set_of_gpu, executor, devices_,
              first_origin + static_cast<std::uint32_t>(set_of_gpu.size()), std::move(observer)) {
    jobs_.set_rendezvous(std::move(announce), circuits);
    jobs_.add({source.job_name(), &source, &times_, std::move(gpus), 0, 0, std::move(scheduling)});
  }
  // All GPUs in one set.
  SingleJob(EventLoop& loop, Executor& executor, TaskSource& source, std::vector<std::uint32_t> gpus,
            std::vector<Time> durations, std::uint32_t first_origin, JobObserver observer = {},
            std::shared_ptr<const TaskScheduling> scheduling = nullptr, const GpuParameters& parameters = {})
      : SingleJob({&loop}, std::vector<std::uint32_t>(1 + *std::max_element(gpus.begin(), gpus.end()), 0),
                  executor, source, gpus, std::move(durations), first_origin, std::move(observer),
                  std::move(scheduling), parameters) {}

  JobSet& jobs() { return jobs_; }
  void start() { jobs_.start(0); }
  const Job* operator->() const { return &jobs_.job(0); }
  std::vector<std::string> waiting(std::size_t limit) const { return jobs_.waiting(limit); }

 private:
  WorkDurations times_;
  ComputeDevices devices_;
  JobSet jobs_;
};

}  // namespace netsim::test
