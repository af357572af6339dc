// Activation offload: what forwards keep of a share of the body's layers is copied to the host's memory,
// behind each forward of the layer. It comes back `ahead` layers before its backward, one copy after the
// other (stream offload). The layers are the first ones of each chunk, whose backwards are farthest away.
//
// Transformer Engine's get_cpu_offload_context() and Megatron-Core's --cpu-offloading-num-layers do so.
// DeepSpeed's cpu_checkpointing does it with what full recomputation keeps.
#include <algorithm>

#include "sim/training/strategy/memory_accounting.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

struct ActivationParameters {
  double share = 0;  // share of the layers, rounded to a whole number of them
  std::int64_t ahead = 1;
};

class ActivationOffload final : public Strategy {
 public:
  explicit ActivationOffload(const ActivationParameters& p) : p_(p) {}

  // The strategies that sum gradients set how far ahead parameters are gathered, as this one does.
  StrategyOrder order() const override {
    return {.after = {"data_parallel", "local_steps", "parameter_servers", "sharded_replicas",
                      "sequence_gradients"}};
  }
  bool takes_part(const JobShape&) const override { return p_.share > 0; }
  void check(const JobShape& job) const override {
    if (!takes_part(job)) return;
    const Model model = job.model->make(1, 2);
    const bool known = std::all_of(model.kinds.begin(), model.kinds.end(), [](const ModelLayer& layer) {
      return std::any_of(layer.forward.begin(), layer.forward.end(), [](const ModelPart& part) {
        return std::any_of(part.operators.begin(), part.operators.end(),
                           [](const Operator& op) { return !op.saved.empty(); });
      });
    });
    if (!known)
      job.key("offload", "activations")
          .fail("the model does not say what its operators keep for the backward");
    const ConfigNode& key = job.key("offload", "ahead");
    if (job.divides_parameters() && p_.ahead != job.gathers_ahead)
      key.fail("parameters are gathered " + std::to_string(job.gathers_ahead) +
               " layers ahead (sharding.ahead), and activations come back with them: has to be the same");
    if (job.fetches_experts() && p_.ahead != job.experts_ahead)
      key.fail("experts are fetched " + std::to_string(job.experts_ahead) +
               " layers ahead (dispatch.ahead), and activations come back with them: has to be the same");
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    graph.replica_traffic.ahead = static_cast<std::uint32_t>(p_.ahead);
    for (StageGraph& stage : graph.stages) {
      for (ChunkGraph& chunk : stage.chunks) offload(graph, chunk, job.recompute);
    }
  }

 private:
  void offload(TrainingGraph& graph, ChunkGraph& chunk, Recompute recompute) const {
    const std::size_t layers = chunk.layers.size();
    const auto repeats = [&](std::uint32_t layer) { return graph.layers[layer].repeats; };
    const auto body = std::count_if(chunk.layers.begin(), chunk.layers.end(), repeats);
    auto left = static_cast<std::int64_t>(p_.share * static_cast<double>(body) + 0.5);
    chunk.stores.resize(layers);
    chunk.loads.resize(layers);
    for (std::size_t i = 0; i < layers && left > 0; ++i) {
      if (!repeats(chunk.layers[i])) continue;
      --left;
      const MemoryChange kept = kept_activations(graph, graph.layers[chunk.layers[i]], recompute);
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

  ActivationParameters p_;
};

const Registration<Strategy> kActivationOffload{
    "activation_offload", "activations of a share of the layers are kept in the memory of the hosts",
    ptdp_keys(in_section(
        kOffloadSection,
        Parameters<ActivationParameters>()
            .real("activations", &ActivationParameters::share, {0, 1},
                  "share of the layers, counted from the first, whose activations are kept in the host's "
                  "memory (Megatron-Core's --cpu-offloading-num-layers)")
            .integer(
                "ahead", &ActivationParameters::ahead, {0, 1000},
                "number of layers by which a layer's activations are copied back ahead of its backward"))),
    [](const ActivationParameters& p, const ConfigNode&) { return std::make_unique<ActivationOffload>(p); }};

}  // namespace
}  // namespace netsim
