#include "sim/training/strategy/strategies.h"

namespace netsim {
namespace {

class ExpertFetchStrategy final : public Strategy {
 public:
  explicit ExpertFetchStrategy(const ExpertFetch& p) : p_(p) {}

  void apply(TrainingGraph& graph) const override {
    if (!graph.model.routed || graph.mesh.size("ep") == 1) return;
    graph.replica_traffic = {true, true, p_.ahead};
    for (StageGraph& stage : graph.stages) {
      for (ChunkGraph& chunk : stage.chunks) move(graph, chunk);
      stage.finished.push_back(FinishNode::kReductions);
    }
  }

 private:
  // Returns the number of parameters of one rank's own experts.
  static std::int64_t parameters(const TrainingGraph& graph, std::uint32_t layer) {
    std::int64_t count = 0;
    for (const Tensor& tensor : graph.layers[layer].parameters)
      count += of_routed_experts(tensor) ? graph.sharding.local(tensor) : 0;
    return count;
  }

  void move(TrainingGraph& graph, ChunkGraph& chunk) const {
    const std::size_t layers = chunk.layers.size();
    chunk.gathers.resize(layers);
    chunk.reductions.resize(layers);
    if (p_.again) chunk.gathers_again.resize(layers);
    for (std::size_t i = 0; i < layers; ++i) {
      const std::int64_t own = parameters(graph, chunk.layers[i]);
      if (own == 0) continue;
      const auto gather = [&](std::vector<GraphNode>& to) {
        add(graph, to, "experts", "ep_across", CollectiveKind::all_gather, own * kParameterBytes);
        add(graph, to, "experts", "ep_within", CollectiveKind::all_gather,
            own * kParameterBytes * graph.mesh.size("ep_across"));
      };
      gather(chunk.gathers[i]);
      if (p_.again) gather(chunk.gathers_again[layers - 1 - i]);
      std::vector<GraphNode>& sums = chunk.reductions[layers - 1 - i];
      const Bytes gradients = own * graph.model.gradient_bytes;
      add(graph, sums, "gradients", "ep_within", CollectiveKind::reduce_scatter,
          gradients * graph.mesh.size("ep_across"));
      add(graph, sums, "gradients", "ep_across", CollectiveKind::reduce_scatter, gradients);
    }
  }

  // Appends a collective along an axis to which each rank contributes `own` bytes.
  static void add(TrainingGraph& graph, std::vector<GraphNode>& to, const char* name, const std::string& axis,
                  CollectiveKind kind, Bytes own) {
    if (graph.mesh.size(axis) == 1) return;
    GraphNode node;
    node.kind = GraphNode::Kind::collective;
    node.name = axis + "_" + name;
    node.collective = kind;
    node.stream = Stream::ep;
    node.group = graph.builder.group(graph.mesh.along({axis}));
    node.bytes = own * graph.mesh.size(axis);
    to.push_back(std::move(node));
  }

  ExpertFetch p_;
};

}  // namespace

std::unique_ptr<Strategy> expert_fetch(const ExpertFetch& parameters) {
  return std::make_unique<ExpertFetchStrategy>(parameters);
}

}  // namespace netsim
