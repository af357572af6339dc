#include <algorithm>
#include <utility>

#include "sim/workload/strategy/strategies.h"

namespace netsim {
namespace {

// "mlp_backward" -> "mlp_weights"
std::string weights_name(const std::string& name) {
  constexpr std::string_view kBackward = "_backward";
  const std::size_t at = name.find(kBackward);
  return (at == std::string::npos ? name : name.substr(0, at)) + "_weights";
}

class Pipeline final : public Strategy {
 public:
  explicit Pipeline(PipelineParallel parameters) : p_(std::move(parameters)) {}

  void apply(TrainingGraph& graph) const override {
    graph.plan = p_.plan;
    divide_layers(graph);
    if (p_.plan->splits_backward()) split_backwards(graph);
    graph.transfers.axis = graph.mesh.index("pp");
    graph.transfers.overlap = p_.overlap_transfers;
    if (p_.plan->shape.stages == 1) return;
    sum_shared(graph);
    make_transfers(graph);
  }

 private:
  void divide_layers(TrainingGraph& graph) const {
    const PipelinePlacement& placement = p_.plan->placement;
    const std::size_t layers = graph.model.body.size() / placement.parts();
    for (std::uint32_t s = 0; s < placement.stages(); ++s) {
      StageGraph stage;
      for (std::uint32_t c = 0; c < placement.chunks(s); ++c) {
        ChunkGraph chunk;
        if (placement.first(s, c)) chunk.layers.push_back(TrainingGraph::kFirst);
        const std::size_t first = placement.held(s, c).part * layers;
        for (std::size_t i = first; i < first + layers; ++i)
          chunk.layers.push_back(TrainingGraph::kBody + graph.model.body[i]);
        if (placement.last(s, c)) chunk.layers.push_back(TrainingGraph::kLast);
        stage.chunks.push_back(std::move(chunk));
      }
      count_parameters(graph, stage);
      graph.stages.push_back(std::move(stage));
    }
  }
  // Those that both ends share count once.
  static void count_parameters(const TrainingGraph& graph, StageGraph& stage) {
    for (const ParameterSet set : {ParameterSet::common, ParameterSet::experts}) {
      std::int64_t& parameters = stage.parameters[static_cast<std::size_t>(set)];
      for (const ChunkGraph& chunk : stage.chunks) {
        for (const std::uint32_t i : chunk.layers) parameters += parameters_of(graph.layers[i], graph, set);
      }
    }
    const bool shared = holds(stage, TrainingGraph::kFirst) || holds(stage, TrainingGraph::kLast);
    if (shared && !graph.model.shared.empty())
      stage.parameters[static_cast<std::size_t>(ParameterSet::common)] +=
          graph.sharding.local(graph.model.shared);
  }
  static bool holds(const StageGraph& stage, std::uint32_t layer) {
    return std::any_of(stage.chunks.begin(), stage.chunks.end(), [layer](const ChunkGraph& chunk) {
      return std::find(chunk.layers.begin(), chunk.layers.end(), layer) != chunk.layers.end();
    });
  }

  // Each backward as two: what the stage before waits for, and the gradients of weights.
  static void split_backwards(TrainingGraph& graph) {
    for (LayerGraph& layer : graph.layers) {
      std::vector<std::size_t> kept{0};  // nodes of `input` up to each of the whole chain
      for (const GraphNode& node : layer.backward) {
        kept.push_back(layer.input.size());
        if (node.kind != GraphNode::Kind::compute) {
          Chain& chain = node.weight_gradient ? layer.weights : layer.input;
          chain.push_back(node);
          // Pieces of an exchange go on side by side.
          std::vector<std::uint32_t> after = std::exchange(chain.back().after, {});
          if (node.stream != Stream::ep) continue;
          for (std::uint32_t& back : after)
            back = static_cast<std::uint32_t>(layer.input.size() - kept[kept.size() - back]);
          chain.back().after = std::move(after);
          continue;
        }
        GraphNode input = node, weights = node;
        input.after.clear();
        weights.after.clear();
        input.work.name += "_input";
        weights.work.name = weights.name = weights_name(node.name);
        const auto computes_weights = [](const Operator& op) { return op.weight_gradient; };
        std::erase_if(input.operators, computes_weights);
        std::erase_if(weights.operators, [](const Operator& op) { return !op.weight_gradient; });
        if (!input.operators.empty()) layer.input.push_back(std::move(input));
        if (!weights.operators.empty()) layer.weights.push_back(std::move(weights));
      }
    }
  }

  // Where the ends of the model are on different stages, each has a copy of what they share.
  static void sum_shared(TrainingGraph& graph) {
    const PipelinePlacement& placement = graph.plan->placement;
    const std::uint32_t first = placement.at(0, 0).stage, last = placement.at(0, placement.parts() - 1).stage;
    if (graph.model.shared.empty() || holds(graph.stages[first], TrainingGraph::kLast)) return;
    GraphNode node;
    node.kind = GraphNode::Kind::collective;
    node.name = "pp_embedding_gradients";
    node.stream = Stream::pp;
    node.group = graph.builder.group(graph.mesh.along({}, "pp", {first, last}));
    node.bytes = graph.sharding.local(graph.model.shared) * graph.model.gradient_bytes;
    for (const std::uint32_t s : {first, last}) {
      StageGraph& stage = graph.stages[s];
      stage.add_finish(node);
      stage.finished.push_back(static_cast<std::uint32_t>(stage.finish.size()));
    }
  }

  // The gathers of the two directions have communicators of their own: their order may differ between the
  // ranks.
  void make_transfers(TrainingGraph& graph) const {
    PipelineTransfers& transfers = graph.transfers;
    transfers.message = graph.model.boundary_bytes * graph.sharding.local(graph.model.boundary);
    const std::uint32_t tensor = graph.mesh.size("tp");
    const bool divided = graph.sharding.parts(Dimension::sequence) > 1;  // each rank has a part already
    if (tensor == 1 || divided || !p_.scatter_gather) return;
    transfers.gathered = transfers.message;
    transfers.message /= tensor;
    transfers.forward_group = graph.builder.group(graph.mesh.along({"tp"}, 1));
    transfers.backward_group = graph.builder.group(graph.mesh.along({"tp"}, 2));
  }

  PipelineParallel p_;
};

}  // namespace

std::unique_ptr<Strategy> pipeline_parallel(PipelineParallel parameters) {
  return std::make_unique<Pipeline>(std::move(parameters));
}

}  // namespace netsim
