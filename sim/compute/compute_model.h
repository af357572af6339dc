// ComputeModel: gives the time that a kernel takes on an accelerator. Each model has one .cpp file; each GPU
// is a configuration of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/compute/kernel.h"
#include "sim/core/time_limits.h"
#include "sim/core/units.h"

namespace netsim {

class ComputeModel {
 public:
  static constexpr const char* kComponentKind = "compute_model";
  virtual ~ComputeModel() = default;
  // Returns why the model cannot time this kernel, or an empty string if it can.
  virtual std::string objection(const Kernel& kernel) const = 0;
  // Returns the kernel's time in ps. The model must have no objection to the kernel.
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
  // Returns the time of all kernels, at most kTooLong.
  Time duration(const Work& work) const {
    Time total = 0;
    for (const Kernel& kernel : work.kernels) total = bounded_sum(total, duration(kernel));
    return total;
  }
};

}  // namespace netsim
