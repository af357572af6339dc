// ComputeTimes: the time that a compute task takes on its GPU when nothing contends for the GPU. A job asks
// for each task, so that GPUs of one job may differ, be slow for a while, or jitter.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "sim/compute/compute_model.h"
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

// TaskDemand: what the kernels of a compute task need of a GPU whose clock follows from power. ComputeDevices
// derives the task's rate from it.
class TaskDemand {
 public:
  // The model must outlive this. It has a power law. `full_rate_time` is the model's time of the
  // work in ps, at least 1: the time at full rate.
  TaskDemand(const ComputeModel& model, Work work, Time full_rate_time)
      : model_(model), work_(std::move(work)), full_rate_time_(full_rate_time) {}
  const PowerLaw& law() const { return *model_.power_law(); }
  // Returns the demands beside communication that holds `held` multiprocessors. Several threads may call
  // this.
  const std::vector<KernelDemand>& beside(std::uint32_t held) const;
  // Returns the time at a clock of `mhz` beside that communication, as a multiple of the time at full rate.
  double slowdown(std::uint32_t held, std::int64_t mhz) const {
    return PowerLaw::time(beside(held), mhz) / static_cast<double>(full_rate_time_);
  }

 private:
  const ComputeModel& model_;
  Work work_;
  Time full_rate_time_;
  mutable std::mutex mutex_;
  mutable std::map<std::uint32_t, std::vector<KernelDemand>> beside_;  // by held multiprocessors
};

class ComputeTimes {
 public:
  virtual ~ComputeTimes() = default;
  // Returns the time of a task of rank `rank`, at least 0. The result depends on the arguments only. Several
  // threads may call this at once.
  virtual Time duration(RankId rank, const ComputeRequest& task) const = 0;
  // Returns what the task needs of a GPU, or null if its time does not follow from power. The result lives as
  // long as this.
  virtual const TaskDemand* demand(RankId /*rank*/, const ComputeRequest& /*task*/) const { return nullptr; }
};

// WorkDurations: times that are the same in every iteration, and at every rank with the same kind of GPU.
class WorkDurations final : public ComputeTimes {
 public:
  explicit WorkDurations(std::vector<Time> by_work) : by_kind_{std::move(by_work)} {}
  // Demands by work; null where a work has none. Empty: the kind of GPU has no power law.
  using Demands = std::vector<std::unique_ptr<TaskDemand>>;
  // `by_kind` holds the times by kind of GPU and work, `kind_of_rank` the kind of GPU that each rank has.
  // `demands` holds those of each kind, or is empty.
  WorkDurations(std::vector<std::vector<Time>> by_kind, std::vector<std::uint32_t> kind_of_rank,
                std::vector<Demands> demands = {})
      : by_kind_(std::move(by_kind)), demands_(std::move(demands)), kind_of_rank_(std::move(kind_of_rank)) {}
  Time duration(RankId rank, const ComputeRequest& task) const override {
    return by_kind_[kind_of(rank)][task.work];
  }
  const TaskDemand* demand(RankId rank, const ComputeRequest& task) const override {
    if (demands_.empty() || task.on_host) return nullptr;
    const Demands& demands = demands_[kind_of(rank)];
    return demands.empty() ? nullptr : demands[task.work].get();
  }

 private:
  std::uint32_t kind_of(RankId rank) const { return kind_of_rank_.empty() ? 0 : kind_of_rank_[rank]; }

  std::vector<std::vector<Time>> by_kind_;
  std::vector<Demands> demands_;             // by kind of GPU
  std::vector<std::uint32_t> kind_of_rank_;  // empty: all ranks have the first kind
};

}  // namespace netsim
