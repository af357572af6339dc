// Weights of the layers' GEMMs are kept in FP8. Replicas that divide the optimizer or the parameters gather
// them at one byte each. Norms, biases, routers, embedding and logits stay in half precision. Transformer
// Engine's fp8_model_init() does so with Megatron-Core's --fp8-param-gather, which needs the distributed
// optimizer or FSDP; so does torchao's enable_fsdp_float8_all_gather.
//
// Counts these weights (LayerGraph::reduced, StageGraph::reduced) for the strategies that move and keep
// parameters. The all-reduce of the greatest values, from which new scales are computed, is not simulated. It
// has 4 bytes per weight matrix, or per 128 x 128 elements.
#include <map>
#include <utility>

#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

struct ParameterPrecision {
  Precision precision = Precision::half;
};

class ReducedParameters final : public Strategy {
 public:
  explicit ReducedParameters(const ParameterPrecision& p) : p_(p) {}

  StrategyOrder order() const override {
    return {.after = {"pipeline_parallel"},
            .before = {"data_parallel", "local_steps", "parameter_servers", "sharded_replicas", "optimizer"}};
  }
  bool takes_part(const JobShape&) const override { return p_.precision != Precision::half; }
  void check(const JobShape& job) const override {
    if (!takes_part(job)) return;
    const ConfigNode& key = job.key("parameter_precision");
    if (job.precision != Precision::fp8)
      key.fail("weights in FP8 are for GEMMs in FP8: precision has to be fp8");
    if (!job.divides_states())
      key.fail("weights in FP8 need optimizer: distributed_adam, which keeps them in fp32 and gathers them");
    if (job.offloaded_optimizer > 0)
      key.fail(
          "the parameters that the hosts' CPUs update come back in half precision; leave offload.optimizer "
          "out");
    if (job.fetches_experts())
      key.fail("experts are fetched in half precision; choose another parallel.expert_exchange");
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
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

  ParameterPrecision p_;
};

const Registration<Strategy> kReducedParameters{
    "reduced_parameters", "weights of the layers' GEMMs are kept and gathered in FP8",
    ptdp_keys(Parameters<ParameterPrecision>().choice(
        "parameter_precision", &ParameterPrecision::precision,
        {{"half", Precision::half}, {"fp8", Precision::fp8}},
        "precision fp8, distributed_adam: precision in which these weights are kept and gathered "
        "(Megatron-Core's --fp8-param-gather); all other parameters are in half precision")),
    [](const ParameterPrecision& p, const ConfigNode&) { return std::make_unique<ReducedParameters>(p); }};

}  // namespace
}  // namespace netsim
