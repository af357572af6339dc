#include "sim/compute/clock_history.h"

#include <utility>

namespace netsim {
namespace {

void scale(KernelDemand& demand, double share) {
  demand.cycles *= share;
  demand.memory_time *= share;
  demand.fixed_time *= share;
  demand.core_energy *= share;
  demand.memory_energy *= share;
}

double share_left(const PowerLaw& law, double later) { return law.window() / (law.window() + later); }

}  // namespace

void ClockHistory::advance(const PowerLaw& law, Time now, bool idle) {
  const auto later = static_cast<double>(now - now_);
  const double share = share_left(law, later);
  scale(clocked_, share);
  scale(unclocked_, share);
  idle_ = (idle_ + (idle ? later : 0)) * share;
  now_ = now;
}

void ClockHistory::add(const PowerLaw& law, const std::vector<KernelDemand>& task, std::int64_t mhz) {
  const double share = share_left(law, PowerLaw::time(task, mhz));
  for (KernelDemand kernel : task) {
    scale(kernel, share);
    const bool clocked = PowerLaw::is_bound_by_clock(kernel, mhz);
    KernelDemand& sum = clocked ? clocked_ : unclocked_;
    (clocked ? sum.cycles : sum.memory_time) += clocked ? kernel.cycles : kernel.memory_time;
    sum.fixed_time += kernel.fixed_time;
    sum.core_energy += kernel.core_energy;
    sum.memory_energy +=
        kernel.memory_energy + kernel.watts_beside * PowerLaw::time(kernel, mhz) / kPsPerSecond;
  }
}

std::int64_t ClockHistory::clock(const PowerLaw& law, std::vector<KernelDemand> running) const {
  running.push_back(clocked_);
  running.push_back(unclocked_);
  return law.clock(running, idle_);
}

}  // namespace netsim
