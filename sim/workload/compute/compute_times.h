// ComputeTimes: how long a compute task takes on its GPU when nothing contends for it. Asked for each task,
// so that GPUs of one job may differ, be slow for a while, or jitter.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

class ComputeTimes {
 public:
  virtual ~ComputeTimes() = default;
  // Of work `work` of the job's source, as rank `rank` does it in iteration `iteration`; at least 0. Depends
  // on its arguments only, and may be asked from several threads at once.
  virtual Time duration(std::uint32_t rank, std::uint32_t iteration, std::uint32_t work) const = 0;
};

// The same at every rank and in every iteration.
class WorkDurations final : public ComputeTimes {
 public:
  explicit WorkDurations(std::vector<Time> by_work) : by_work_(std::move(by_work)) {}
  Time duration(std::uint32_t, std::uint32_t, std::uint32_t work) const override { return by_work_[work]; }

 private:
  std::vector<Time> by_work_;
};

}  // namespace netsim
