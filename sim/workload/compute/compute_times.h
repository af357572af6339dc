// ComputeTimes: how long a compute task takes on its GPU when nothing contends for it. Asked for each task,
// so that GPUs of one job may differ, be slow for a while, or jitter.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/core/units.h"
#include "sim/workload/task.h"

namespace netsim {

class ComputeTimes {
 public:
  virtual ~ComputeTimes() = default;
  // Of a compute task of rank `rank`; at least 0. Depends on its arguments only, and may be asked from
  // several threads at once.
  virtual Time duration(std::uint32_t rank, const Task& task) const = 0;
};

// The same in every iteration, and at every rank with the same kind of GPU.
class WorkDurations final : public ComputeTimes {
 public:
  explicit WorkDurations(std::vector<Time> by_work) : by_kind_{std::move(by_work)} {}
  // `by_kind`: of the kinds that ranks have, by work.
  WorkDurations(std::vector<std::vector<Time>> by_kind, std::vector<std::uint32_t> kind_of_rank)
      : by_kind_(std::move(by_kind)), kind_of_rank_(std::move(kind_of_rank)) {}
  Time duration(std::uint32_t rank, const Task& task) const override {
    return by_kind_[kind_of_rank_.empty() ? 0 : kind_of_rank_[rank]][task.work];
  }

 private:
  std::vector<std::vector<Time>> by_kind_;
  std::vector<std::uint32_t> kind_of_rank_;  // empty: all have the first
};

}  // namespace netsim
