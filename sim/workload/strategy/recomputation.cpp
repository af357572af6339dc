#include "sim/workload/strategy/strategies.h"

namespace netsim {
namespace {

// "attention_forward" -> "attention_recompute"
std::string recomputed(const std::string& name) {
  constexpr std::string_view kForward = "forward";
  if (name.size() < kForward.size() || name.substr(name.size() - kForward.size()) != kForward) return name;
  return name.substr(0, name.size() - kForward.size()) + "recompute";
}

class FullRecomputation final : public Strategy {
 public:
  void apply(TrainingGraph& graph) const override {
    for (LayerGraph& layer : graph.layers) {
      if (!layer.repeats) continue;
      layer.recompute = layer.forward;
      for (GraphNode& node : layer.recompute) node.name = recomputed(node.name);
    }
  }
};

}  // namespace

std::unique_ptr<Strategy> full_recomputation() { return std::make_unique<FullRecomputation>(); }

}  // namespace netsim
