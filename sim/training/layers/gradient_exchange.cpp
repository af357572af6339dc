#include "sim/training/layers/gradient_exchange.h"

#include <string>

namespace netsim {

std::vector<FusedGradients> fuse_gradients(const LayerStep& step, Bytes first_limit, Bytes limit) {
  std::vector<FusedGradients> groups;
  bool open = false;
  for (const std::uint32_t layer : step.ready()) {
    if (!open) groups.emplace_back();
    FusedGradients& group = groups.back();
    group.layers.push_back(layer);
    group.bytes += step.layers()[layer].bytes;
    open = group.bytes < (groups.size() == 1 ? first_limit : limit);
  }
  return groups;
}

std::vector<LayerStep::Node> gradients_of(const LayerStep& step, const FusedGradients& group) {
  std::vector<LayerStep::Node> nodes;
  for (const std::uint32_t layer : group.layers) nodes.push_back(step.gradient(layer));
  return nodes;
}

std::string fused_name(const std::string& what, const LayerStep& step, const FusedGradients& group) {
  const std::string first = what + " " + step.layers()[group.layers.front()].name;
  return group.layers.size() == 1 ? first : first + " to " + step.layers()[group.layers.back()].name;
}

}  // namespace netsim
