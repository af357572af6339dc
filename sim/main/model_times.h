// ModelTimes: the times of works for commands that run nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/compute/compute_model.h"
#include "sim/compute/kernel.h"
#include "sim/core/registry.h"

namespace netsim {

class ModelTimes {
 public:
  // `model` names a compute model; "" stands for none. Throws ConfigError for a name that is none.
  explicit ModelTimes(const std::string& model)
      : model_(model.empty() ? nullptr : Registry<ComputeModel>::instance().create(model)) {}

  // Returns the time of a work: the given ones of its kernels, and the model's for those with operations.
  // Returns nothing where a kernel has neither.
  std::optional<Time> operator()(const Work& work) const { return time_of_work(model_.get(), work); }

 private:
  std::shared_ptr<const ComputeModel> model_;  // shared, so that a std::function can hold the times
};

}  // namespace netsim
