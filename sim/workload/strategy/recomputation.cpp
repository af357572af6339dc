#include "sim/workload/strategy/strategies.h"

namespace netsim {
namespace {

// "attention_forward" -> "attention_recompute"
std::string recomputed(const std::string& name) {
  constexpr std::string_view kForward = "forward";
  const std::size_t at = name.find(kForward);
  return at == std::string::npos ? name : std::string(name).replace(at, kForward.size(), "recompute");
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
