#include <map>
#include <utility>

#include "sim/training/strategy/strategies.h"

namespace netsim {
namespace {

class ReducedParameters final : public Strategy {
 public:
  void apply(TrainingGraph& graph) const override {
    for (LayerGraph& layer : graph.layers) count(graph, layer);
    for (StageGraph& stage : graph.stages) {
      for (const ChunkGraph& chunk : stage.chunks) {
        for (const std::uint32_t layer : chunk.layers) {
          for (std::size_t set = 0; set < stage.reduced.size(); ++set)
            stage.reduced[set] += graph.layers[layer].reduced[set];
        }
      }
    }
  }

 private:
  // Counts the matrices that GEMMs multiply. Each piece of a GEMM has the same matrix.
  static void count(const TrainingGraph& graph, LayerGraph& layer) {
    std::map<std::pair<ParameterSet, std::int64_t>, std::int64_t> multiplied;  // by set and pieces
    for (const GraphNode& node : layer.forward) {
      for (const Operator& op : node.operators) {
        if (!op.linear) continue;
        const Tensor weights{op.batch, op.n, op.k};
        const bool experts = graph.experts_apart && of_routed_experts(weights);
        multiplied[{experts ? ParameterSet::experts : ParameterSet::common, op.pieces}] +=
            graph.sharding.local(weights);
      }
    }
    for (const auto& [key, elements] : multiplied)
      layer.reduced[static_cast<std::size_t>(key.first)] += elements / key.second;
  }
};

}  // namespace

std::unique_ptr<Strategy> reduced_parameters() { return std::make_unique<ReducedParameters>(); }

}  // namespace netsim
