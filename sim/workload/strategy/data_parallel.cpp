#include <algorithm>

#include "sim/workload/strategy/strategies.h"

namespace netsim {
namespace {

class DataParallel final : public Strategy {
 public:
  DataParallel(Bytes bucket, bool overlap) : bucket_(bucket), overlap_(overlap) {}

  void apply(TrainingGraph& graph) const override {
    const bool copies = graph.plan->placement.routes() > 1;
    if (graph.mesh.size("dp") == 1 && !copies) return;
    for (std::uint32_t s = 0; s < graph.stages.size(); ++s) {
      StageGraph& stage = graph.stages[s];
      GraphNode node;
      node.kind = GraphNode::Kind::collective;
      node.name = "dp_gradients";
      node.stream = Stream::dp;
      node.group = graph.builder.group(group(graph, s, copies));
      Bytes left = stage.parameters * graph.model.gradient_bytes;
      if (overlap_) left -= add_buckets(graph, stage, node);
      for (; left > 0; left -= node.bytes) {
        node.bytes = bucket_ == 0 ? left : std::min(left, bucket_);
        stage.add_finish(node);
      }
      // They are one after the other.
      const bool remained = !stage.finish.empty() && stage.finish.back().node.stream == Stream::dp;
      if (remained) stage.finished = {static_cast<std::uint32_t>(stage.finish.size())};
      if (!remained && overlap_) stage.finished.push_back(FinishNode::kReductions);
    }
  }

 private:
  // Stage s of a bidirectional pipeline and the one opposite hold the same parts of the model.
  static GroupExpression group(const TrainingGraph& graph, std::uint32_t s, bool copies) {
    std::vector<std::string> axes;
    if (graph.mesh.size("dp") > 1) axes.emplace_back("dp");
    if (!copies) return graph.mesh.along(axes);
    const auto opposite = static_cast<std::uint32_t>(graph.stages.size()) - 1 - s;
    return graph.mesh.along(axes, "pp", {std::min(s, opposite), std::max(s, opposite)});
  }

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
        if (node.bytes < bucket_) continue;
        all += node.bytes;
        chunk->reductions[i] = node;
        node.bytes = 0;
      }
    }
    return all;
  }

  Bytes bucket_;
  bool overlap_;
};

}  // namespace

std::unique_ptr<Strategy> data_parallel(Bytes bucket, bool overlap) {
  return std::make_unique<DataParallel>(bucket, overlap);
}

}  // namespace netsim
