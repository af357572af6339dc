#include "sim/compute/power_law.h"

#include <algorithm>

namespace netsim {
namespace {

constexpr double kPsPerCycleAtOneMhz = 1e6;

}  // namespace

bool PowerLaw::is_bound_by_clock(const KernelDemand& kernel, std::int64_t mhz) {
  return kernel.cycles * (kPsPerCycleAtOneMhz / static_cast<double>(mhz)) > kernel.memory_time;
}

double PowerLaw::time(const KernelDemand& kernel, std::int64_t mhz) {
  const double cycle = kPsPerCycleAtOneMhz / static_cast<double>(mhz);
  return kernel.fixed_time + std::max(kernel.cycles * cycle, kernel.memory_time);
}

double PowerLaw::time(const std::vector<KernelDemand>& kernels, std::int64_t mhz) {
  double total = 0;
  for (const KernelDemand& kernel : kernels) total += time(kernel, mhz);
  return total;
}

double PowerLaw::power(const std::vector<KernelDemand>& kernels, double idle, std::int64_t mhz) const {
  const double busy = time(kernels, mhz), all = busy + idle;
  if (all <= 0) return p_.static_watts;
  double core = 0, memory = 0;
  for (const KernelDemand& kernel : kernels) {
    core += kernel.core_energy;
    memory += kernel.memory_energy + kernel.watts_beside * time(kernel, mhz) / kPsPerSecond;
  }
  const double clock = static_cast<double>(mhz) / static_cast<double>(p_.clock_mhz);
  const double voltage = 1 - p_.voltage_slope * (1 - clock);
  const double active = p_.active_watts * clock * (busy / all);
  return p_.static_watts + voltage * voltage * (active + core / all * kPsPerSecond) +
         memory / all * kPsPerSecond;
}

std::int64_t PowerLaw::clock(const std::vector<KernelDemand>& kernels, double idle) const {
  std::int64_t steps = (p_.clock_mhz - p_.lowest_clock_mhz) / p_.clock_step_mhz;
  std::int64_t below = 0;  // steps below the highest clock that are known to be too few
  if (power(kernels, idle, p_.clock_mhz) <= p_.limit_watts) return p_.clock_mhz;
  while (below + 1 < steps) {
    const std::int64_t middle = (below + steps) / 2;
    const bool within = power(kernels, idle, p_.clock_mhz - middle * p_.clock_step_mhz) <= p_.limit_watts;
    (within ? steps : below) = middle;
  }
  return p_.clock_mhz - steps * p_.clock_step_mhz;
}

}  // namespace netsim
