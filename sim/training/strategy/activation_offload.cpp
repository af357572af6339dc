#include <algorithm>

#include "sim/training/strategy/strategies.h"

namespace netsim {
namespace {

class ActivationOffloadStrategy final : public Strategy {
 public:
  explicit ActivationOffloadStrategy(const ActivationOffload& p) : p_(p) {}

  void apply(TrainingGraph& graph) const override {
    graph.replica_traffic.ahead = p_.ahead;
    for (StageGraph& stage : graph.stages) {
      for (ChunkGraph& chunk : stage.chunks) offload(graph, chunk);
    }
  }

 private:
  void offload(TrainingGraph& graph, ChunkGraph& chunk) const {
    const std::size_t layers = chunk.layers.size();
    const auto repeats = [&](std::uint32_t layer) { return graph.layers[layer].repeats; };
    const auto body = std::count_if(chunk.layers.begin(), chunk.layers.end(), repeats);
    auto left = static_cast<std::int64_t>(p_.share * static_cast<double>(body) + 0.5);
    chunk.stores.resize(layers);
    chunk.loads.resize(layers);
    for (std::size_t i = 0; i < layers && left > 0; ++i) {
      if (!repeats(chunk.layers[i])) continue;
      --left;
      const MemoryChange kept = kept_activations(graph, graph.layers[chunk.layers[i]], p_.kept);
      if (kept.bytes == 0 && kept.each == 0) continue;
      MemoryChange there = kept;
      there.kind = MemoryKind::host;
      GraphNode node = copy(graph, chunk.layers[i], kept);
      node.kind = GraphNode::Kind::copy_to_host;
      node.name = "activation_offload";
      node.memory = {{there}, {kept.reversed()}};
      chunk.stores[i].push_back(node);
      node.kind = GraphNode::Kind::copy_from_host;
      node.name = "activation_load";
      node.memory = {{kept}, {there.reversed()}};
      chunk.loads[layers - 1 - i].push_back(std::move(node));
    }
  }
  static GraphNode copy(const TrainingGraph& graph, std::uint32_t layer, const MemoryChange& kept) {
    GraphNode node;
    node.stream = Stream::offload;
    node.bytes = kept.bytes;
    if (kept.each == 0) return node;
    node.row_bytes = kept.each;
    for (const GraphNode& other : graph.layers[layer].forward)
      node.rows_plus_one = std::max(node.rows_plus_one, other.rows_plus_one);
    return node;
  }

  ActivationOffload p_;
};

}  // namespace

std::unique_ptr<Strategy> activation_offload(const ActivationOffload& parameters) {
  return std::make_unique<ActivationOffloadStrategy>(parameters);
}

}  // namespace netsim
