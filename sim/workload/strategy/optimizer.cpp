#include "sim/workload/strategy/strategies.h"

namespace netsim {
namespace {

class Adam final : public Strategy {
 public:
  void apply(TrainingGraph& graph) const override {
    for (StageGraph& stage : graph.stages) {
      GraphNode node;
      node.work = optimizer_work(stage.parameters, graph.model.gradient_bytes);
      node.name = node.work.name;
      stage.add_finish(std::move(node));
      stage.finished = {static_cast<std::uint32_t>(stage.finish.size())};
    }
  }
};

}  // namespace

std::unique_ptr<Strategy> optimizer() { return std::make_unique<Adam>(); }

}  // namespace netsim
