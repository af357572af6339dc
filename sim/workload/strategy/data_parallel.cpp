#include <algorithm>

#include "sim/workload/strategy/strategies.h"

namespace netsim {
namespace {

class DataParallel final : public Strategy {
 public:
  explicit DataParallel(const DataParallelism& p) : p_(p) {}

  void apply(TrainingGraph& graph) const override {
    if (replica_count(graph) == 1) return;
    for (std::uint32_t s = 0; s < graph.stages.size(); ++s) {
      StageGraph& stage = graph.stages[s];
      const GraphNode node = among_replicas(
          graph, s, "dp_gradients", p_.sharded ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce);
      Bytes left = stage.parameters * graph.model.gradient_bytes;
      if (p_.overlap) left -= add_buckets(graph, stage, node);
      stage.add_finish(node, left, p_.bucket);
      // They are one after the other.
      const bool remained = !stage.finish.empty() && stage.finish.back().node.stream == Stream::dp;
      if (remained) stage.finished = {static_cast<std::uint32_t>(stage.finish.size())};
      if (!remained && p_.overlap) stage.finished.push_back(FinishNode::kReductions);
    }
  }

 private:
  // Layers of the body fill buckets in the order in which the last backward comes to them; returns the bytes
  // of all buckets.
  Bytes add_buckets(TrainingGraph& graph, StageGraph& stage, GraphNode node) const {
    Bytes all = 0;
    for (auto chunk = stage.chunks.rbegin(); chunk != stage.chunks.rend(); ++chunk) {
      chunk->reductions.resize(chunk->layers.size());
      for (std::size_t i = 0; i < chunk->layers.size(); ++i) {
        const LayerGraph& layer = graph.layers[chunk->layers[chunk->layers.size() - 1 - i]];
        if (!layer.repeats) continue;
        node.bytes += parameters_of(layer.parameters, graph.sharding) * graph.model.gradient_bytes;
        if (node.bytes < p_.bucket) continue;
        all += node.bytes;
        chunk->reductions[i] = node;
        node.bytes = 0;
      }
    }
    return all;
  }

  DataParallelism p_;
};

// The ranks that hold the same parameters as a rank of the stage. Stage s of a bidirectional pipeline and the
// one opposite hold the same parts of the model.
GroupExpression replicas(const TrainingGraph& graph, std::uint32_t stage) {
  std::vector<std::string> axes;
  if (graph.mesh.size("replicas") > 1) axes.emplace_back("replicas");
  if (graph.plan->placement.routes() == 1) return graph.mesh.along(axes);
  const auto opposite = static_cast<std::uint32_t>(graph.stages.size()) - 1 - stage;
  return graph.mesh.along(axes, "pp", {std::min(stage, opposite), std::max(stage, opposite)});
}

}  // namespace

std::uint32_t replica_count(const TrainingGraph& graph) {
  return graph.mesh.size("replicas") * graph.plan->placement.routes();
}

GraphNode among_replicas(TrainingGraph& graph, std::uint32_t stage, const std::string& name,
                         CollectiveKind kind) {
  GraphNode node;
  node.kind = GraphNode::Kind::collective;
  node.name = name;
  node.collective = kind;
  node.stream = Stream::dp;
  node.group = graph.builder.group(replicas(graph, stage));
  return node;
}

std::unique_ptr<Strategy> data_parallel(const DataParallelism& parameters) {
  return std::make_unique<DataParallel>(parameters);
}

}  // namespace netsim
