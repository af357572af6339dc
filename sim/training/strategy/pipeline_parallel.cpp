// Divides the layers of the body among the stages of axis "pp". The first and the last part of the plan's
// placement also have an end of the model. Steps run in the order of the plan. Gradients of parameters that
// both ends share are all-reduced between the stages that hold them (stream pp). Where these have different
// meshes, the gradients are exchanged and added (StageReshardings).
#include <algorithm>
#include <utility>

#include "sim/core/errors.h"
#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/pipeline_division.h"
#include "sim/training/strategy/strategy.h"
#include "sim/training/strategy/weight_gradients.h"

namespace netsim {
namespace {

struct PipelineParallel {
  std::shared_ptr<const ScheduledPipeline> plan;
  std::vector<std::uint32_t> layers;  // number of layers of the body, by part
  // Between stages, each rank of axis "tp" sends 1/t of the boundary tensor and the receivers gather it.
  bool scatter_gather = true;
  // Stages do not wait for their sends.
  bool overlap_transfers = true;
  // All messages of a stage are on one stream (PipelineTransfers::ordered).
  bool ordered_transfers = false;
  // Multiprocessors of a GPU that dispatch and combine hold while a forward and a backward overlap.
  std::int64_t held_multiprocessors = 0;
};

// DividedLayers: divides the layers of a graph among its stages.
class DividedLayers {
 public:
  explicit DividedLayers(PipelineParallel parameters) : p_(std::move(parameters)) {}

  void apply(TrainingGraph& graph) const {
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
        chunk.first_layer = static_cast<std::uint32_t>(begins[part]);
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
    const bool shared = stage.holds(TrainingGraph::kFirst) || stage.holds(TrainingGraph::kLast);
    if (shared && !graph.model.shared.empty())
      stage.parameters[static_cast<std::size_t>(ParameterSet::common)] +=
          graph.sharding.local(graph.model.shared);
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
        auto [input, weights] = split_gradients(node);
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
    if (graph.model.shared.empty() || graph.stages[first].holds(TrainingGraph::kLast)) return;
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

  // Returns the bytes of a rank's part of a boundary tensor, for all parts of a microbatch.
  static Bytes message_of(const TrainingGraph& graph, const Tensor& tensor) {
    return graph.sub_batches * graph.model.boundary_bytes * graph.sharding.local(tensor);
  }
  // Sets messages by boundary, for models whose layers do not all have outputs of the same size.
  void divide_messages(TrainingGraph& graph) const {
    const Model& model = graph.model;
    const auto own = [&](std::uint32_t kind) { return !model.kinds[kind].output.empty(); };
    if (std::none_of(model.body.begin(), model.body.end(), own)) return;
    for (const Tensor& tensor : boundary_tensors(model, p_.layers))
      graph.transfers.messages.push_back(message_of(graph, tensor));
  }

  // Sets the transfers. The gathers of the two directions have communicators of their own, because their
  // order may differ between the ranks.
  void make_transfers(TrainingGraph& graph) const {
    PipelineTransfers& transfers = graph.transfers;
    transfers.message = message_of(graph, graph.model.boundary);
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

struct PipelineKeys {
  std::int64_t pipeline = 1;
  std::int64_t virtual_stages = 1;
  PipelineDivision layers;
  ConfigNode schedule;
  bool scatter_gather = true;
  bool overlap_p2p = true, ordered_p2p = false;
  std::int64_t multiprocessors = 0;
};

class PipelineStrategy final : public Strategy {
 public:
  explicit PipelineStrategy(const PipelineKeys& p) : p_(p) {}

  void describe(JobShape& job) const override {
    job.pipeline = p_.pipeline;
    job.virtual_stages = p_.virtual_stages;
    job.orders_messages = p_.ordered_p2p;
    job.scatters_boundaries = p_.scatter_gather;
  }
  void complete(JobShape& job) const override {
    const std::string refusal = p_.pipeline > 1 ? job.model->refuse(Division::pipeline) : std::string();
    if (!refusal.empty()) job.key("parallel", "pipeline").fail(refusal);
    if (!job.gives("parallel", "layers"))
      job.require_divides("pipeline", p_.pipeline * p_.virtual_stages, "model.layers", job.model->layers());
    const PipelineShape shape{static_cast<std::uint32_t>(p_.pipeline),
                              static_cast<std::uint32_t>(p_.virtual_stages),
                              static_cast<std::uint32_t>(job.microbatches)};
    job.plan =
        std::make_shared<const ScheduledPipeline>(schedule_pipeline(p_.schedule, job.key("parallel"), shape));
    job.layers =
        layers_of_parts(p_.layers, job.model->layers(), job.plan->placement, job.key("parallel", "layers"));
  }
  void check(const JobShape& job) const override {
    if (!job.plan->trains) {
      job.key("parallel", "schedule").fail("ptdp trains: a schedule without backwards has nothing to reduce");
    }
    if (p_.ordered_p2p) {
      const std::string refusal = refuse_order(*job.plan, !p_.overlap_p2p);
      if (!refusal.empty()) job.key("ordered_p2p").fail(refusal);
    }
    if (p_.multiprocessors > 0 && !job.plan->pairs()) {
      job.key("dispatch", "multiprocessors")
          .fail("it has to be 0, because no forward overlaps a backward in the schedule");
    }
    check_copies(job);
  }
  std::vector<std::string> notes(const JobShape& job) const override {
    std::vector<std::string> notes =
        p_.overlap_p2p ? std::vector<std::string>() : notes_on_blocking(*job.plan);
    if (p_.ordered_p2p && p_.pipeline == 1) notes.push_back(kNoMessages);
    return notes;
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    DividedLayers(
        {job.plan, job.layers, p_.scatter_gather, p_.overlap_p2p, p_.ordered_p2p, p_.multiprocessors})
        .apply(graph);
  }

 private:
  static void check_copies(const JobShape& job) {
    const PipelinePlacement& placement = job.plan->placement;
    for (std::uint32_t part = 0; placement.routes() > 1 && part < job.plan->parts(); ++part) {
      const std::vector<std::uint32_t> holders = placement.holders(part);
      if (holders.front() + holders.back() + 1 == job.plan->shape.stages && holders.size() == 2) continue;
      job.key("parallel", "schedule")
          .fail(
              "copies of a part of the model have to be on opposite stages, where their gradients are "
              "summed");
    }
  }

  PipelineKeys p_;
};

Parameters<PipelineKeys> pipeline_keys() {
  using P = PipelineKeys;
  return in_section(
             kParallelSection,
             Parameters<P>()
                 .integer("pipeline", &P::pipeline, {1, 65'536}, "pipeline stages (p)")
                 .integer("virtual_stages", &P::virtual_stages, {1, 10'000}, "model chunks per stage (v)")
                 .section("layers", &P::layers, pipeline_division_parameters(),
                          "how many layers each stage has, where they are not all alike")
                 .component("schedule", &P::schedule, "pipeline_schedule", "",
                            "order of forwards and backwards; default: interleaved if virtual_stages is more "
                            "than 1, otherwise one_f_one_b"))
      .flag("scatter_gather", &P::scatter_gather,
            "between stages each tensor rank sends 1/t of the tensor and the receivers gather it")
      .flag("overlap_p2p", &P::overlap_p2p,
            "a stage continues to compute while its messages to other stages are in flight; false: it waits "
            "for them")
      .flag("ordered_p2p", &P::ordered_p2p,
            "all messages of a stage are in one stream, as in one NCCL communicator: the sends of a step and "
            "the next receives are one call, which waits for the call before it; false: a send waits only "
            "for its data, and a receive only for the receive before it in its direction")
      .section(kDispatchSection.name,
               Parameters<P>().integer("multiprocessors", &P::multiprocessors, {0, 1000},
                                       "with expert_exchange: dispatch, multiprocessors that the kernels of "
                                       "dispatch and combine occupy while a forward and a backward overlap "
                                       "(dual_pipe); both compute on the other multiprocessors"),
               kDispatchSection.doc);
}

const Registration<Strategy> kPipelineParallel{
    "pipeline_parallel", "stages divide the layers, and microbatches pass through them as a schedule says",
    ptdp_keys(pipeline_keys()),
    [](const PipelineKeys& p, const ConfigNode&) { return std::make_unique<PipelineStrategy>(p); }};

}  // namespace
}  // namespace netsim
