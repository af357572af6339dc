// BackwardOrder: the order in which a worker of `kind: layers` computes gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/training/layers/timed_layer.h"

namespace netsim {

struct BackwardStep {
  std::uint32_t layer = 0;
  // True for the gradient of the parameters, false for that of the input.
  bool weights = false;
};

class BackwardOrder {
 public:
  static constexpr const char* kComponentKind = "backward_order";
  virtual ~BackwardOrder() = default;
  // Returns all gradients in the order in which they are computed. Steps that a layer does not need are
  // skipped by the caller. The input gradient of a layer has to precede all gradients of the layers that it
  // reads; otherwise the workload is refused. Throws ConfigError where the order cannot be that of these
  // layers.
  virtual std::vector<BackwardStep> order(const std::vector<TimedLayer>& layers) const = 0;
};

}  // namespace netsim
