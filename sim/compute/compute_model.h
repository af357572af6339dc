// ComputeModel: the time a kernel takes on an accelerator. One .cpp per model; GPUs are configurations of
// one.
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
  // Why the model has no time for this kernel; empty: it has.
  virtual std::string objection(const Kernel& kernel) const = 0;
  // Of a kernel that it does not object to.
  virtual Time duration(const Kernel& kernel) const = 0;
  // Peak dense half-precision rate in FLOP/s, for "percent of peak".
  virtual double peak_flops() const = 0;
  // Of the accelerator; 0: nobody said.
  virtual Bytes memory() const { return 0; }
  // SMs, or what else runs a thread block; 0: nobody said.
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
