// Megatron-LM's tensor parallelism over axis "tp" (Shoeybi et al., arXiv 1909.08053). Heads, the inner
// dimension of the MLP and the vocabulary are divided. Each partial sum is all-reduced (stream tp) before
// anything else is computed.
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

struct TensorParameters {
  std::int64_t tensor = 1;
};

class TensorParallel final : public Strategy {
 public:
  explicit TensorParallel(const TensorParameters& p) : p_(p) {}

  void describe(JobShape& job) const override { job.tensor = p_.tensor; }
  void check(const JobShape& job) const override {
    const std::string refusal = job.tensor > 1 ? job.model->refuse(Division::tensor) : std::string();
    if (!refusal.empty()) job.key("parallel", "tensor").fail(refusal);
    for (const auto& [key, value] : job.model->divided())
      job.require_divides("tensor", job.tensor, "model." + key, value);
  }
  void divide(const Mesh& mesh, Sharding& sharding) const override {
    for (const Dimension dimension : {Dimension::heads, Dimension::inner, Dimension::vocabulary})
      sharding.divide(dimension, mesh.size("tp"));
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
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

  TensorParameters p_;
};

const Registration<Strategy> kTensorParallel{
    "tensor_parallel",
    "ranks divide heads, the MLPs' inner dimension and the vocabulary, and sum partial results",
    ptdp_keys(in_section(kParallelSection,
                         Parameters<TensorParameters>().integer("tensor", &TensorParameters::tensor,
                                                                {1, 65'536}, "tensor-parallel ranks (t)"))),
    [](const TensorParameters& p, const ConfigNode&) { return std::make_unique<TensorParallel>(p); }};

}  // namespace
}  // namespace netsim
