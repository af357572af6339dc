// ComputeTimes: the time that a compute task takes on its GPU when nothing contends for the GPU. A job asks
// for each task, so that GPUs of one job may differ, be slow for a while, or jitter.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/units.h"

namespace netsim {

// ComputeRequest: the part of a compute task that its time may depend on.
struct ComputeRequest {
  std::uint32_t task = 0;       // the task's id, unique in its rank
  std::uint32_t iteration = 0;  // iteration of the job, from 0
  std::uint32_t work = 0;       // index of its kernels in the list of the job's works
  bool on_host = false;         // the CPUs of the host compute it, not the GPU
};

class ComputeTimes {
 public:
  virtual ~ComputeTimes() = default;
  // Returns the time of a task of rank `rank`, at least 0. The result depends on the arguments only. Several
  // threads may call this at once.
  virtual Time duration(RankId rank, const ComputeRequest& task) const = 0;
};

// WorkDurations: times that are the same in every iteration, and at every rank with the same kind of GPU.
class WorkDurations final : public ComputeTimes {
 public:
  explicit WorkDurations(std::vector<Time> by_work) : by_kind_{std::move(by_work)} {}
  // `by_kind` holds the times by kind of GPU and work, `kind_of_rank` the kind of GPU that each rank has.
  WorkDurations(std::vector<std::vector<Time>> by_kind, std::vector<std::uint32_t> kind_of_rank)
      : by_kind_(std::move(by_kind)), kind_of_rank_(std::move(kind_of_rank)) {}
  Time duration(RankId rank, const ComputeRequest& task) const override {
    return by_kind_[kind_of_rank_.empty() ? 0 : kind_of_rank_[rank]][task.work];
  }

 private:
  std::vector<std::vector<Time>> by_kind_;
  std::vector<std::uint32_t> kind_of_rank_;  // empty: all ranks have the first kind
};

}  // namespace netsim
