// ClockHistory: what a GPU has computed lately, from which it chooses its clock. The power limit holds for
// the mean power over a time constant, PowerLawParameters::window, idle time included. Older work counts
// less: a time dt later the share window / (window + dt) of it is left.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/compute/power_law.h"
#include "sim/core/units.h"

namespace netsim {

class ClockHistory {
 public:
  // Moves on to `now`, which is not before the last call's. `idle` says that no task ran meanwhile.
  void advance(const PowerLaw& law, Time now, bool idle);
  // Adds a task that ended at the time of the last advance() and ran at `mhz`.
  void add(const PowerLaw& law, const std::vector<KernelDemand>& task, std::int64_t mhz);
  // Returns the clock in MHz for the running tasks, whose kernels are `running`.
  std::int64_t clock(const PowerLaw& law, std::vector<KernelDemand> running) const;

 private:
  // Decayed sums: kernels that the clock bounded, and all else. Each is one kernel to the power law.
  KernelDemand clocked_, unclocked_;
  double idle_ = 0;  // ps
  Time now_ = 0;
};

}  // namespace netsim
