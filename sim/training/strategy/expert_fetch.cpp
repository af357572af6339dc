// Fetching of experts (ExpertExchange::fetch) over axis "ep", which is made of "ep_within", the ranks of a
// host, and "ep_across". Before each forward of a layer with experts, ranks with the same place in their
// hosts first exchange experts. Then the ranks of a host exchange theirs, so that a host gets each expert
// once (Janus; stream ep).
//
// After each backward, the gradients are summed up in the reverse order, within hosts first.
#include "sim/training/strategy/parameter_bytes.h"
#include "sim/training/strategy/replicas.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

struct FetchParameters {
  std::int64_t ahead = 1;
  bool again = false;
};

class ExpertFetch final : public Strategy {
 public:
  explicit ExpertFetch(const FetchParameters& p) : p_(p) {}

  StrategyOrder order() const override {
    return {.after = {"pipeline_parallel"},
            .before = {"reduced_parameters", "data_parallel", "local_steps", "sharded_replicas"}};
  }
  void describe(JobShape& job) const override { job.experts_ahead = p_.ahead; }
  bool takes_part(const JobShape& job) const override { return job.fetches_experts(); }
  void check(const JobShape& job) const override {
    if (!takes_part(job)) return;
    const ConfigNode& key = job.key("parallel", "expert_exchange");
    if (job.overlap_gradients || job.overlap_parameter_gather || job.divides_gradients()) {
      key.fail(
          "experts are fetched, and their gradients summed, for each microbatch: without gradient.overlap, "
          "overlap_parameter_gather and sharding of gradients or parameters");
    }
    if (job.plan->reduces())
      key.fail(std::string(kScheduleReduces) +
               "those of experts that are fetched are summed for each microbatch");
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    if (graph.mesh.size("ep") == 1) return;
    graph.replica_traffic = {true, true, static_cast<std::uint32_t>(p_.ahead)};
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

  FetchParameters p_;
};

const Registration<Strategy> kExpertFetch{
    "expert_fetch", "with expert_exchange: fetch, experts travel to the ranks that have the tokens",
    ptdp_keys(in_section(kDispatchSection,
                         Parameters<FetchParameters>()
                             .integer("ahead", &FetchParameters::ahead, {0, 1000},
                                      "with expert_exchange: fetch, number of layers by which a "
                                      "layer's experts are fetched ahead of their use")
                             .flag("again", &FetchParameters::again,
                                   "with expert_exchange: fetch, a rank fetches its experts again for the "
                                   "backward; false: it keeps those of the forward"))),
    [](const FetchParameters& p, const ConfigNode&) { return std::make_unique<ExpertFetch>(p); }};

}  // namespace
}  // namespace netsim
