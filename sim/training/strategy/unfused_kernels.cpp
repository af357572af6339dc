// Unfused kernels: operations that PyTorch runs by several kernels where the model has one fused kernel.
// Megatron-Core fuses the gated activation only with bias_activation_fusion, and the rotation of queries and
// keys only with apply_rope_fusion. Both are off by default (TransformerConfig, version 0.12).
// - Activation (glu() in megatron/core/transformer/mlp.py): silu(x1), then its product with x2. The halves
//   x1 and x2 are views. Backward: the gradients of both factors, that of silu, and the concatenation of the
//   gradients of both halves (torch.chunk).
// - Rotation (_apply_rotary_pos_emb_bshd() in megatron/core/models/common/embeddings/rope_utils.py):
//   t * cos + cat(-t2, t1) * sin, concatenated with the empty part that is not rotated. Its backward zeroes
//   a tensor for that part and adds it.
//
// Each kernel reads and writes 2 bytes an element. The negation has half of the elements. The kernels that
// make cosines and sines are left out: their tensors have one head.
#include <string>
#include <utility>
#include <vector>

#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

enum class UnfusedKernels : std::uint8_t { none, activation, activation_rotary };
struct UnfusedKernelsParameters {
  UnfusedKernels kernels = UnfusedKernels::none;
};

// UnfusedStep: a kernel, and the bytes that it moves for each element. `kept`: the backward needs its result.
struct UnfusedStep {
  const char* name;
  std::int64_t bytes;
  bool kept = false;
};

// UnfusedOperation: the kernels that stand for one of the model.
struct UnfusedOperation {
  const char* name;
  bool rotates;
  std::vector<UnfusedStep> steps;
};

const std::vector<UnfusedOperation>& unfused_operations() {
  static const std::vector<UnfusedOperation> all{{"swiglu", false, {{"silu", 4, true}, {"gate_product", 6}}},
                                                 {"swiglu_backward",
                                                  false,
                                                  {{"gate_gradient", 6},
                                                   {"silu_output_gradient", 6},
                                                   {"silu_backward", 6},
                                                   {"halves_join_backward", 8}}},
                                                 {"rotary",
                                                  true,
                                                  {{"rotary_negation", 2},
                                                   {"rotary_join", 4},
                                                   {"rotary_sine", 4},
                                                   {"rotary_cosine", 4},
                                                   {"rotary_sum", 6},
                                                   {"rotary_end", 4}}},
                                                 {"rotary_backward",
                                                  true,
                                                  {{"rotary_sine_backward", 4},
                                                   {"rotary_negation_backward", 2},
                                                   {"rotary_join_backward", 4},
                                                   {"rotary_cosine_backward", 4},
                                                   {"rotary_sum_backward", 6},
                                                   {"rotary_zeroes_backward", 2},
                                                   {"rotary_end_backward", 6}}}};
  return all;
}

// UnfusedOperators: rewrites the operators of a layer.
class UnfusedOperators {
 public:
  UnfusedOperators(LayerGraph& layer, bool rotations) : layer_(layer), rotations_(rotations) {}

  void rewrite() {
    for (Chain* chain : {&layer_.forward, &layer_.backward}) {
      for (GraphNode& node : *chain) node.operators = unfused(node.operators);
    }
  }

 private:
  std::vector<Operator> unfused(const std::vector<Operator>& operators) {
    std::vector<Operator> made;
    made.reserve(operators.size());
    for (const Operator& op : operators) {
      if (const UnfusedOperation* operation = find(op)) {
        append(made, op, operation->steps);
      } else {
        made.push_back(op);
      }
    }
    return made;
  }
  const UnfusedOperation* find(const Operator& op) const {
    for (const UnfusedOperation& operation : unfused_operations()) {
      if (op.name == operation.name && (rotations_ || !operation.rotates)) return &operation;
    }
    return nullptr;
  }
  // Appends the kernels for each tensor of the operator. What they keep is kept by the layer.
  void append(std::vector<Operator>& made, const Operator& op, const std::vector<UnfusedStep>& steps) {
    for (const Traffic& traffic : op.traffic) {
      for (const UnfusedStep& step : steps) {
        Operator kernel = op;
        kernel.name = step.name;
        kernel.traffic = {{step.bytes, traffic.tensor}};
        kernel.saved.clear();
        if (step.kept) {
          layer_.saved.push_back(result_of(op.module, saved(2, traffic.tensor)));
          kernel.saved = op.saved;
        }
        made.push_back(std::move(kernel));
      }
    }
  }

  LayerGraph& layer_;
  bool rotations_;
};

class Unfused final : public Strategy {
 public:
  explicit Unfused(const UnfusedKernelsParameters& p) : p_(p) {}

  // Recomputation repeats these kernels, and the last one may write the operand of a GEMM in FP8.
  StrategyOrder order() const override {
    return {.before = {"module_recomputation", "fused_accumulation", "reduced_precision", "tensor_copies",
                       "routing_kernels", "context_parallel", "tensor_parallel"}};
  }
  bool takes_part(const JobShape&) const override { return p_.kernels != UnfusedKernels::none; }
  void check(const JobShape& job) const override {
    if (takes_part(job) && !job.some_operator([](const Operator& op) { return op.name == "swiglu"; }))
      job.key("unfused_kernels").fail("no layer of the model has a gated activation: it has to be none");
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    const bool rotations = p_.kernels == UnfusedKernels::activation_rotary;
    for (LayerGraph& layer : graph.layers) UnfusedOperators(layer, rotations).rewrite();
  }

 private:
  UnfusedKernelsParameters p_;
};

const Registration<Strategy> kUnfusedKernels{
    "unfused_kernels", "activations and rotations by several kernels of PyTorch, as Megatron-Core runs them",
    ptdp_keys(Parameters<UnfusedKernelsParameters>().choice(
        "unfused_kernels", &UnfusedKernelsParameters::kernels,
        {{"none", UnfusedKernels::none},
         {"activation", UnfusedKernels::activation},
         {"activation_rotary", UnfusedKernels::activation_rotary}},
        "what PyTorch computes by several kernels: none; activation, the gated activation of MLPs and "
        "experts (Megatron-Core without bias_activation_fusion); or activation_rotary, also the rotation of "
        "queries and keys (without apply_rope_fusion)")),
    [](const UnfusedKernelsParameters& p, const ConfigNode&) { return std::make_unique<Unfused>(p); }};

}  // namespace
}  // namespace netsim
