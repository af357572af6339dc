#include <algorithm>
#include <utility>

#include "sim/core/errors.h"
#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/strategies.h"

namespace netsim {
namespace {

// Returns the name for gradients of weights: "mlp_backward" -> "mlp_weights".
std::string weights_name(const std::string& name) {
  constexpr std::string_view kBackward = "_backward";
  const std::size_t at = name.find(kBackward);
  return (at == std::string::npos ? name : name.substr(0, at)) + "_weights";
}

class PipelineParallelism final : public Strategy {
 public:
  explicit PipelineParallelism(PipelineParallel parameters) : p_(std::move(parameters)) {}

  void apply(TrainingGraph& graph) const override {
    graph.plan = p_.plan;
    divide_layers(graph);
    if (p_.plan->splits_backward()) split_backwards(graph);
    if (p_.plan->pairs()) {
      for (LayerGraph& layer : graph.layers) layer.paired = pair_of(layer);
    }
    graph.transfers.axis = graph.mesh.laid_out() ? 0 : graph.mesh.index("pp");
    graph.transfers.overlap = p_.overlap_transfers;
    graph.transfers.ordered = p_.ordered_transfers;
    if (p_.plan->shape.stages == 1) return;
    sum_shared(graph);
    make_transfers(graph);
  }

 private:
  void divide_layers(TrainingGraph& graph) const {
    const PipelinePlacement& placement = p_.plan->placement;
    std::vector<std::size_t> begins{0};  // by part
    for (const std::uint32_t layers : p_.layers) begins.push_back(begins.back() + layers);
    NETSIM_CHECK(begins.size() == placement.parts() + 1 && begins.back() == graph.model.body.size(),
                 "the parts of the pipeline are not all layers");
    for (std::uint32_t s = 0; s < placement.stages(); ++s) {
      StageGraph stage;
      for (std::uint32_t c = 0; c < placement.chunks(s); ++c) {
        ChunkGraph chunk;
        if (placement.first(s, c)) chunk.layers.push_back(TrainingGraph::kFirst);
        const std::uint32_t part = placement.held(s, c).part;
        for (std::size_t i = begins[part]; i < begins[part + 1]; ++i)
          chunk.layers.push_back(TrainingGraph::kBody + graph.model.body[i]);
        if (placement.last(s, c)) chunk.layers.push_back(TrainingGraph::kLast);
        stage.chunks.push_back(std::move(chunk));
      }
      count_parameters(graph, stage);
      graph.stages.push_back(std::move(stage));
    }
  }
  // Counts the parameters of a stage. Parameters that both ends share count once.
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

  // Splits a computation into gradients of its input and gradients of weights. Either may have no operators.
  static std::pair<GraphNode, GraphNode> halves_of(const GraphNode& node) {
    GraphNode input = node, weights = node;
    input.work.name += "_input";
    weights.work.name = weights.name = weights_name(node.name);
    std::erase_if(input.operators, [](const Operator& op) { return op.weight_gradient; });
    std::erase_if(weights.operators, [](const Operator& op) { return !op.weight_gradient; });
    return {std::move(input), std::move(weights)};
  }

  LayerGraph::Paired pair_of(const LayerGraph& layer) const {
    LayerGraph::Paired pair{layer.forward, layer.recompute, put_off_weights(layer.backward)};
    for (Chain* chain : {&pair.forward, &pair.recompute, &pair.backward}) {
      for (GraphNode& node : *chain) {
        for (Operator& op : node.operators) op.held_multiprocessors = p_.held_multiprocessors;
      }
    }
    return pair;
  }

  static Chain put_off_weights(const Chain& backward) {
    ChainEditor edit(backward);
    std::vector<std::pair<GraphNode, ChainEditor::Number>> put_off;
    const auto append_weights = [&] {
      for (auto& [node, after] : put_off) edit.add(std::move(node), {after});
      put_off.clear();
    };
    for (std::size_t i = 0; i < backward.size(); ++i) {
      const ChainEditor::Numbers after = edit.waits_for(i);
      auto [input, weights] = halves_of(backward[i]);
      const bool both = !input.operators.empty() && !weights.operators.empty();
      if (!both) input = backward[i];
      edit.stands(i, edit.add(std::move(input), after));
      if (both) put_off.emplace_back(std::move(weights), edit.last());
      if (communicates(backward[i])) append_weights();
    }
    append_weights();
    return edit.finish();
  }

  // Splits each backward into two chains: the gradients of the input, which the stage before waits for, and
  // the gradients of weights.
  static void split_backwards(TrainingGraph& graph) {
    for (LayerGraph& layer : graph.layers) {
      // A node waits for the same nodes as before. Where one of these is in the other half, it waits for what
      // that node waits for.
      ChainEditor inputs(layer.backward), all_weights(layer.backward);
      for (std::size_t i = 0; i < layer.backward.size(); ++i) {
        const GraphNode& node = layer.backward[i];
        const ChainEditor::Numbers after = inputs.waits_for(i), weights_after = all_weights.waits_for(i);
        if (node.kind != GraphNode::Kind::compute) {
          if (node.weight_gradient) all_weights.add(node, weights_after);
          if (!node.weight_gradient) inputs.add(node, after);
          inputs.stands(i, inputs.last());
          all_weights.stands(i, all_weights.last());
          continue;
        }
        auto [input, weights] = halves_of(node);
        if (!input.operators.empty()) inputs.add(std::move(input), after);
        if (!weights.operators.empty()) all_weights.add(std::move(weights), weights_after);
        inputs.stands(i, inputs.last());
        all_weights.stands(i, all_weights.last());
      }
      layer.input = inputs.finish();
      layer.weights = all_weights.finish();
    }
  }

  // Sums the gradients of shared parameters. Where the ends of the model are on different stages, each has a
  // copy of them.
  static void sum_shared(TrainingGraph& graph) {
    const PipelinePlacement& placement = graph.plan->placement;
    const std::uint32_t first = placement.at(0, 0).stage, last = placement.at(0, placement.parts() - 1).stage;
    if (graph.model.shared.empty() || holds(graph.stages[first], TrainingGraph::kLast)) return;
    const bool has_first = graph.mesh.has_stage(first), has_last = graph.mesh.has_stage(last);
    if (!has_first && !has_last) return;
    GraphNode node;
    node.name = "pp_embedding_gradients";
    node.stream = Stream::pp;
    if (has_first != has_last) {
      node.kind = GraphNode::Kind::share;
      node.stage = has_first ? last : first;
      share(graph.stages[has_first ? first : last], node);
      return;
    }
    node.kind = GraphNode::Kind::collective;
    node.group = graph.builder.group(graph.mesh.along({}, std::vector<std::uint32_t>{first, last}));
    node.bytes = graph.sharding.local(graph.model.shared) * graph.model.gradient_bytes;
    for (const std::uint32_t s : {first, last}) share(graph.stages[s], node);
  }
  static void share(StageGraph& stage, const GraphNode& node) {
    stage.add_finish(node);
    stage.finished.push_back(static_cast<std::uint32_t>(stage.finish.size()));
  }

  // Sets messages by boundary, for models whose layers do not all have outputs of the same size.
  void divide_messages(TrainingGraph& graph) const {
    const Model& model = graph.model;
    const auto own = [&](std::uint32_t kind) { return !model.kinds[kind].output.empty(); };
    if (std::none_of(model.body.begin(), model.body.end(), own)) return;
    for (const Tensor& tensor : boundary_tensors(model, p_.layers))
      graph.transfers.messages.push_back(model.boundary_bytes * graph.sharding.local(tensor));
  }

  // Sets the transfers. The gathers of the two directions have communicators of their own, because their
  // order may differ between the ranks.
  void make_transfers(TrainingGraph& graph) const {
    PipelineTransfers& transfers = graph.transfers;
    transfers.message = graph.model.boundary_bytes * graph.sharding.local(graph.model.boundary);
    divide_messages(graph);
    const std::uint32_t tensor = graph.mesh.size("tp");
    // Each rank of axis "tp" already has only a part.
    const bool divided = graph.sharding.parts(Dimension::sequence) > graph.sharding.parts(Dimension::tokens);
    if (tensor == 1 || divided || !p_.scatter_gather) return;
    transfers.gathered = transfers.message;
    transfers.message /= tensor;
    transfers.forward_group = graph.builder.group(graph.mesh.along({"tp"}, 1));
    transfers.backward_group = graph.builder.group(graph.mesh.along({"tp"}, 2));
  }

  PipelineParallel p_;
};

}  // namespace

std::vector<Tensor> boundary_tensors(const Model& model, const std::vector<std::uint32_t>& layers) {
  std::vector<Tensor> tensors;
  std::size_t end = 0;
  for (std::size_t part = 0; part + 1 < layers.size(); ++part) {
    end += layers[part];
    const Tensor& output = end == 0 ? model.boundary : model.kinds[model.body[end - 1]].output;
    tensors.push_back(output.empty() ? model.boundary : output);
  }
  return tensors;
}

std::unique_ptr<Strategy> pipeline_parallel(PipelineParallel parameters) {
  return std::make_unique<PipelineParallelism>(std::move(parameters));
}

}  // namespace netsim
