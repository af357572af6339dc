// ModelTimes: the times of works for commands without a cluster.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/compute/compute_model.h"
#include "sim/compute/kernel.h"
#include "sim/core/registry.h"
#include "sim/core/time_limits.h"

namespace netsim {

class ModelTimes {
 public:
  // `model` names a compute model; "" stands for none. Throws ConfigError for a name that is none.
  explicit ModelTimes(const std::string& model)
      : model_(model.empty() ? nullptr : Registry<ComputeModel>::instance().create(model)) {}

  // Returns the time of a work: the given ones of its kernels, and the model's for those with operations.
  // Returns nothing where a kernel has neither.
  std::optional<Time> operator()(const Work& work) const {
    Time total = 0;
    for (const Kernel& kernel : work.kernels) {
      const bool given = kernel.kind == Kernel::Kind::fixed;
      if (!given && (model_ == nullptr || !model_->objection(kernel).empty())) return std::nullopt;
      total = bounded_sum(total, given ? kernel.duration : model_->duration(kernel));
    }
    return total;
  }

 private:
  std::shared_ptr<const ComputeModel> model_;  // shared, so that a std::function can hold the times
};

}  // namespace netsim
