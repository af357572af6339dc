#include "sim/training/layers/backward_order.h"

#include <array>

namespace netsim {

std::string backward_problem(const std::vector<TimedLayer>& layers, const std::vector<BackwardStep>& order) {
  std::vector<std::uint32_t> readers(layers.size(), 0);  // whose input gradients are still missing
  for (const TimedLayer& layer : layers) {
    for (const std::uint32_t before : layer.after) ++readers[before];
  }
  const std::vector<bool> nothing(layers.size());
  std::array<std::vector<bool>, 2> done{nothing, nothing};  // by `weights`
  for (const auto& [layer, weights] : order) {
    const std::string what = std::string(weights ? "the weight gradient" : "the backward") + " of layer ";
    if (layer >= layers.size()) return what + std::to_string(layer) + " does not exist";
    if (!has_gradient(layers[layer], weights)) continue;
    const std::string named = what + "'" + layers[layer].name + "'";
    if (done[weights ? 1 : 0][layer]) return named + " is computed twice";
    if (readers[layer] > 0) return named + " comes before a gradient that it is computed from";
    done[weights ? 1 : 0][layer] = true;
    if (weights) continue;
    for (const std::uint32_t before : layers[layer].after) --readers[before];
  }
  for (std::uint32_t layer = 0; layer < layers.size(); ++layer) {
    for (const bool weights : {false, true}) {
      if (has_gradient(layers[layer], weights) && !done[weights ? 1 : 0][layer])
        return "a gradient of layer '" + layers[layer].name + "' is left out";
    }
  }
  return {};
}

}  // namespace netsim
