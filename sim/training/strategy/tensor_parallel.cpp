#include "sim/training/strategy/strategies.h"

namespace netsim {
namespace {

class TensorParallel final : public Strategy {
 public:
  void divide(const Mesh& mesh, Sharding& sharding) const override {
    for (const Dimension dimension : {Dimension::heads, Dimension::inner, Dimension::vocabulary})
      sharding.divide(dimension, mesh.size("tp"));
  }
  void apply(TrainingGraph& graph) const override {
    if (graph.mesh.size("tp") == 1) return;
    const std::uint32_t group = graph.builder.group(graph.mesh.along({"tp"}));
    for (LayerGraph& layer : graph.layers) {
      for (Chain* chain : {&layer.forward, &layer.recompute, &layer.backward})
        reduce_sums(*chain, graph.sharding, group);
    }
  }

 private:
  static void reduce_sums(Chain& chain, const Sharding& sharding, std::uint32_t group) {
    for (GraphNode& node : chain) {
      if (node.kind != GraphNode::Kind::sum || node.sum.over == Dimension::expert_inner) continue;
      node.kind = GraphNode::Kind::collective;
      node.name = "tp_" + node.name;
      node.collective = CollectiveKind::all_reduce;
      node.stream = Stream::tp;
      node.group = group;
      node.bytes = node.sum.element_bytes * sharding.local(node.sum.tensor);
    }
  }
};

}  // namespace

std::unique_ptr<Strategy> tensor_parallel() { return std::make_unique<TensorParallel>(); }

}  // namespace netsim
