#include "sim/workload/strategy/strategies.h"

namespace netsim {
namespace {

class Adam final : public Strategy {
 public:
  explicit Adam(bool sharded) : sharded_(sharded) {}
  void apply(TrainingGraph& graph) const override {
    const std::int64_t parts = sharded_ ? replica_count(graph) : 1;
    for (StageGraph& stage : graph.stages) {
      GraphNode node;
      node.work = optimizer_work((stage.parameters + parts - 1) / parts, graph.model.gradient_bytes);
      node.name = node.work.name;
      stage.add_finish(std::move(node));
      stage.finished = {static_cast<std::uint32_t>(stage.finish.size())};
    }
  }

 private:
  bool sharded_;
};

}  // namespace

std::unique_ptr<Strategy> optimizer(bool sharded) { return std::make_unique<Adam>(sharded); }

}  // namespace netsim
