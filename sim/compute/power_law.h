// PowerLaw: the highest clock at which a GPU stays within its power limit.
//
//   power = static + (active * clock + energy of operations / time) * voltage^2 + energy of bytes / time
//
// Clock and voltage are shares of the highest ones. The voltage falls linearly with the clock. Bytes of the
// memory have a voltage of their own, which the clock does not change.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

constexpr double kPsPerSecond = 1e12;

// KernelDemand: what a kernel needs of a GPU whose clock may change. Times are in ps, energies in joules.
struct KernelDemand {
  double cycles = 0;         // clock cycles of the multiprocessors
  double memory_time = 0;    // of its bytes, at the same time as the cycles
  double fixed_time = 0;     // before both, at any clock
  double core_energy = 0;    // of its operations at the highest voltage
  double memory_energy = 0;  // of its bytes
  double watts_beside = 0;   // power of what communication moves while the kernel runs
};

struct PowerLawParameters {
  double limit_watts = 700;
  double static_watts = 70, active_watts = 234;
  double voltage_slope = 0.8;  // relative change of the voltage for one of the clock
  std::int64_t clock_mhz = 1980, lowest_clock_mhz = 210, clock_step_mhz = 15;
  Time window = 100 * kMillisecond;  // over which ClockHistory averages the power
};

class PowerLaw {
 public:
  explicit PowerLaw(const PowerLawParameters& parameters) : p_(parameters) {}

  double window() const { return static_cast<double>(p_.window); }
  // Returns whether a higher clock would make the kernel faster.
  static bool is_bound_by_clock(const KernelDemand& kernel, std::int64_t mhz);
  // Returns the time of a kernel, or of kernels one after the other, in ps at a clock of `mhz`.
  static double time(const KernelDemand& kernel, std::int64_t mhz);
  static double time(const std::vector<KernelDemand>& kernels, std::int64_t mhz);
  // Returns the mean power in watts of the kernels and `idle` ps without any at a clock of `mhz`. An idle GPU
  // draws the static power.
  double power(const std::vector<KernelDemand>& kernels, double idle, std::int64_t mhz) const;
  // Returns the highest clock in MHz at which that power is at most the limit, or else the lowest clock.
  std::int64_t clock(const std::vector<KernelDemand>& kernels, double idle) const;

 private:
  PowerLawParameters p_;
};

}  // namespace netsim
