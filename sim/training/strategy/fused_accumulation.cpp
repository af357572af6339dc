// Fused accumulation: GEMMs of weight gradients add to the sum of the microbatches' gradients, in its type.
// No separate kernel reads their results and adds them (Megatron-LM's gradient_accumulation_fusion;
// DeepGEMM's kernels for weight gradients, deepseek-ai/DeepGEMM pull request 95). Gradients that no GEMM
// computes (an embedding lookup), or a GEMM of patches (a convolution), are added by a separate kernel as
// before.
#include <algorithm>
#include <tuple>
#include <vector>

#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

// Returns the extents of more than one element, sorted, because a gradient may be computed transposed.
std::vector<std::tuple<std::int64_t, Dimension>> extents(const Tensor& tensor) {
  std::vector<std::tuple<std::int64_t, Dimension>> all;
  for (const Extent& extent : tensor) {
    if (extent.size > 1) all.emplace_back(extent.size, extent.along);
  }
  std::sort(all.begin(), all.end());
  return all;
}

enum class Accumulation { separate, fused };
struct AccumulationParameters {
  Accumulation accumulation = Accumulation::separate;
};

class FusedAccumulation final : public Strategy {
 public:
  explicit FusedAccumulation(const AccumulationParameters& p) : p_(p) {}

  // A kernel that adds gradients would count as one that writes the operand of the GEMM behind it.
  StrategyOrder order() const override { return {.before = {"reduced_precision"}}; }
  bool takes_part(const JobShape&) const override { return p_.accumulation == Accumulation::fused; }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    for (LayerGraph& layer : graph.layers) fuse(layer.backward, graph.model.gradient_bytes);
  }

 private:
  static void fuse(Chain& chain, std::int64_t gradient_bytes) {
    std::vector<Operator*> computed;  // gradients that are not added yet
    for (GraphNode& node : chain) {
      for (Operator& op : node.operators) {
        if (op.kind == Kernel::Kind::gemm && op.weight_gradient && op.traffic.empty())
          computed.push_back(&op);
        if (!is_accumulation(op)) continue;
        std::erase_if(op.traffic, [&](const Traffic& added) {
          const auto gemm = std::find_if(computed.begin(), computed.end(), [&](const Operator* candidate) {
            return extents({candidate->batch, candidate->m, candidate->n}) == extents(added.tensor);
          });
          if (gemm == computed.end()) return false;
          (*gemm)->accumulates = true;
          (*gemm)->result_bytes = gradient_bytes;
          computed.erase(gemm);
          return true;
        });
      }
    }
    for (GraphNode& node : chain) {
      std::erase_if(node.operators,
                    [](const Operator& op) { return is_accumulation(op) && op.traffic.empty(); });
    }
  }

  AccumulationParameters p_;
};

const Registration<Strategy> kFusedAccumulation{
    "fused_accumulation", "GEMMs of weight gradients add to the sum of the microbatches' gradients",
    ptdp_keys(in_section(
        kGradientSection,
        Parameters<AccumulationParameters>().choice(
            "accumulation", &AccumulationParameters::accumulation,
            {{"separate", Accumulation::separate}, {"fused", Accumulation::fused}},
            "how a microbatch's gradients are added to those of the others: by kernels of their own, "
            "which read what GEMMs wrote in half precision, or by these GEMMs"))),
    [](const AccumulationParameters& p, const ConfigNode&) {
      return std::make_unique<FusedAccumulation>(p);
    }};

}  // namespace
}  // namespace netsim
