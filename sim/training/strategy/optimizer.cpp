#include "sim/training/strategy/strategies.h"

namespace netsim {
namespace {

class Adam final : public Strategy {
 public:
  explicit Adam(bool sharded) : sharded_(sharded) {}
  void apply(TrainingGraph& graph) const override {
    for (StageGraph& stage : graph.stages) {
      std::int64_t parameters = 0, reduced = 0;
      for (const ParameterSet set : {ParameterSet::common, ParameterSet::experts}) {
        parameters += updated_parameters(graph, stage.parameters_of(set), set, sharded_);
        reduced += updated_parameters(graph, stage.reduced_of(set), set, sharded_);
      }
      stage.add_finish(optimizer_step(parameters, graph.model.gradient_bytes, reduced));
      stage.finished = {static_cast<std::uint32_t>(stage.finish.size())};
    }
  }

 private:
  bool sharded_;
};

}  // namespace

std::int64_t updated_parameters(const TrainingGraph& graph, std::int64_t parameters, ParameterSet set,
                                bool sharded) {
  return sharded ? equal_part(parameters, shard_count(graph, set)) : parameters;
}

GraphNode optimizer_step(std::int64_t parameters, Bytes gradient_bytes, std::int64_t reduced) {
  GraphNode node;
  node.work = optimizer_work(parameters, gradient_bytes, reduced);
  node.name = node.work.name;
  // Adam copies gradients in half precision to fp32.
  if (gradient_bytes == 2) {
    const MemoryChange copies{MemoryKind::optimizer, 4 * parameters};
    node.memory = {{copies}, {copies.reversed()}};
  }
  return node;
}

std::unique_ptr<Strategy> optimizer(bool sharded) { return std::make_unique<Adam>(sharded); }

}  // namespace netsim
