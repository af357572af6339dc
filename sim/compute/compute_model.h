// ComputeModel: gives the time that a kernel takes on an accelerator. Each model has one .cpp file; each GPU
// is a configuration of a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/compute/kernel.h"
#include "sim/compute/power_law.h"
#include "sim/core/time_limits.h"
#include "sim/core/units.h"

namespace netsim {

// KernelWaves: when a kernel finishes parts of its result. Its thread blocks run in waves of equal length;
// the last wave may have fewer blocks.
struct KernelWaves {
  Time begin = 0, end = 0;  // of the first and the last wave, from the kernel's launch
  std::int64_t waves = 1;
  std::int64_t blocks = 1, blocks_in_wave = 1;
  // Returns the time from the launch to the end of the first `count` waves, 0 <= count <= waves.
  Time end_of(std::int64_t count) const {
    return begin + static_cast<Time>((Int128{end - begin} * count + waves - 1) / waves);
  }
  // Returns the number of blocks that have ended after the first `count` waves.
  std::int64_t blocks_after(std::int64_t count) const {
    return count >= waves ? blocks : blocks_in_wave * count;
  }
  // Returns the number of waves that run before a slice begins, 0 to `waves`. KernelSlice::index may be
  // `count`, which stands for the kernel's end.
  std::int64_t waves_before(const KernelSlice& slice) const;
  // Returns the time of a slice. The first one has the launch.
  Time time_of(const KernelSlice& slice) const;
};

class ComputeModel {
 public:
  static constexpr const char* kComponentKind = "compute_model";
  virtual ~ComputeModel() = default;
  // Returns why the model cannot time this kernel, or an empty string if it can.
  virtual std::string objection(const Kernel& kernel) const = 0;
  // Returns the time in ps of a whole kernel, whatever its slice. The model must have no objection to it.
  virtual Time duration(const Kernel& kernel) const = 0;
  // Returns the peak dense half-precision rate in FLOP/s, for "percent of peak".
  virtual double peak_flops() const = 0;
  // Returns the accelerator's memory in bytes; 0: unknown.
  virtual Bytes memory() const { return 0; }
  // Returns the number of SMs or other units that run a thread block; 0: unknown.
  virtual std::uint32_t multiprocessors() const { return 0; }
  // Returns notes on the model for the user, when the run is over. `kernels` are those of the workload that
  // have no duration of their own.
  virtual std::vector<std::string> notes(const std::vector<const Kernel*>& /*kernels*/) const { return {}; }
  // Returns the time of all kernels, or of their slices, at most kTooLong.
  virtual Time duration(const Work& work) const;
  // Returns when a kernel finishes parts of its result on the multiprocessors that
  // Kernel::held_multiprocessors leaves. A model that knows no waves has one.
  virtual KernelWaves waves(const Kernel& kernel) const { return {0, duration(kernel), 1, 1, 1}; }
  // Returns how power limits the clock, or null if this model's times do not follow from power.
  virtual const PowerLaw* power_law() const { return nullptr; }
  // Returns what the kernels need beside communication that holds `held` multiprocessors in addition to those
  // of Kernel::held_multiprocessors. Only models with a power law know it.
  virtual std::vector<KernelDemand> demands(const Work& /*work*/, std::int64_t /*held*/) const { return {}; }
};

// Returns the time of a work by `model`, which may be null: then only kernels with given durations have a
// time. Returns nothing where a kernel has none.
std::optional<Time> time_of_work(const ComputeModel* model, const Work& work);

}  // namespace netsim
