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
      GraphNode node;
      node.kind = GraphNode::Kind::collective;
      node.name = "dp_gradients";
      node.collective = p_.sharded ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
      node.stream = Stream::dp;
      node.group = graph.builder.group(replicas(graph, s));
      Bytes left = stage.parameters * graph.model.gradient_bytes;
      if (p_.overlap) left -= add_buckets(graph, stage, node);
      for (; left > 0; left -= node.bytes) {
        node.bytes = p_.bucket == 0 ? left : std::min(left, p_.bucket);
        stage.add_finish(node);
      }
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
    node.bytes = 0;
    for (auto chunk = stage.chunks.rbegin(); chunk != stage.chunks.rend(); ++chunk) {
      chunk->reductions.resize(chunk->layers.size());
      for (std::size_t i = 0; i < chunk->layers.size(); ++i) {
        const LayerGraph& layer = graph.layers[chunk->layers[chunk->layers.size() - 1 - i]];
        if (!layer.repeats) continue;
        for (const Tensor& tensor : layer.parameters)
          node.bytes += graph.sharding.local(tensor) * graph.model.gradient_bytes;
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

}  // namespace

GroupExpression replicas(const TrainingGraph& graph, std::uint32_t stage) {
  std::vector<std::string> axes;
  if (graph.mesh.size("dp") > 1) axes.emplace_back("dp");
  if (graph.plan->placement.routes() == 1) return graph.mesh.along(axes);
  const auto opposite = static_cast<std::uint32_t>(graph.stages.size()) - 1 - stage;
  return graph.mesh.along(axes, "pp", {std::min(stage, opposite), std::max(stage, opposite)});
}
std::uint32_t replica_count(const TrainingGraph& graph) {
  return graph.mesh.size("dp") * graph.plan->placement.routes();
}

std::unique_ptr<Strategy> data_parallel(const DataParallelism& parameters) {
  return std::make_unique<DataParallel>(parameters);
}

}  // namespace netsim
