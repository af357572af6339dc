// BackwardOrder: the order in which a worker of `kind: layers` computes gradients.
#pragma once

#include <cstdint>
#include <string>
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
  // Returns all gradients in the order in which they are computed. The caller skips steps for which
  // has_gradient() is false. The input gradient of a layer has to precede all gradients of the layers that it
  // reads; otherwise the workload is refused. Throws ConfigError where the order cannot be that of these
  // layers.
  virtual std::vector<BackwardStep> order(const std::vector<TimedLayer>& layers) const = 0;
};

// Returns whether a layer has the computation. One without a time for its parameters' gradient computes it
// with that of the input. Only the first layers of a network may do without a gradient of the input.
inline bool has_gradient(const TimedLayer& layer, bool weights) {
  if (weights) return layer.weight_gradient > 0;
  return !layer.after.empty() || layer.backward > 0 || layer.weight_gradient == 0 || layer.all_to_all > 0;
}
// Returns whether that computation has the gradient of the layer's parameters as its result.
inline bool makes_gradient(const TimedLayer& layer, bool weights) {
  return weights == (layer.weight_gradient > 0);
}
// Returns why the gradients cannot be computed in an order; "" if they can.
std::string backward_problem(const std::vector<TimedLayer>& layers, const std::vector<BackwardStep>& order);

}  // namespace netsim
