// Tensor copies: kernels that a framework runs beside those that compute, because a kernel before or
// behind wants a tensor in another place. PyTorch makes them; a compiler or fused kernels would not.
// - Attention (megatron/core/transformer/attention.py). Queries, keys and values are views of one result.
// With
//   grouped queries, reshape() copies the queries, and the attention kernel's values have to be contiguous
//   (get_qkv_layout() of Transformer Engine). Backward, the three gradients are concatenated (SplitAlongDim).
// - Experts that are computed one after the other (SequentialMLP in moe/experts.py; moe_grouped_gemm: false).
//   Their results are concatenated (torch.cat), and backward the gradients of their inputs (torch.split).
// - The sum by token (unpermute_with_padded_tokens() in moe/moe_utils.py). It multiplies each copy by its
//   probability, zeroes the sums, and adds the copies to them by scatter_add(). Backward gathers the
//   gradients, and multiplies them by probabilities and by copies. The gradient of index_select() is zeroed
//   and added to.
//
// Each kernel reads and writes 2 bytes an element. scatter_add() reads a copy, and reads and writes the sum.
#include <optional>
#include <utility>
#include <vector>

#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

enum class TensorCopies : std::uint8_t { none, megatron_core, megatron_core_sequential };
struct TensorCopiesParameters {
  TensorCopies copies = TensorCopies::none;
};

using Operators = std::vector<Operator>;

bool has_name(const Operator& op, const char* name) { return op.name == name; }

// Returns the copies before a forward attention.
Operators before_attention(const AttentionCore& core) {
  Operators copies;
  if (core.queries.back().size != core.keys.back().size)
    copies.push_back(memory_bound("query_copy", 4, core.queries));
  copies.push_back(memory_bound("value_copy", 4, core.values));
  return copies;
}

// Returns the concatenation of the gradients of queries, keys and values.
Operator joined_gradients(const AttentionCore& core) {
  return memory_bound("qkv_join_backward", {{4, core.queries}, {4, core.keys}, {4, core.values}});
}

// Sets the bytes of a kernel that works on copies of tokens, and then on the sums by token.
void set_traffic(Operator& op, std::int64_t of_copies, std::int64_t of_tokens, std::size_t copies) {
  op.traffic[copies].bytes_per_element = of_copies;
  op.traffic[1 - copies].bytes_per_element = of_tokens;
}

// Sets the bytes of what unpermute, its backward and the backward of permute move.
void copy_tokens(Operator& op) {
  if (has_name(op, "unpermute")) set_traffic(op, 10, 2, 0);
  if (has_name(op, "unpermute_backward")) set_traffic(op, 16, 0, 1);
  if (has_name(op, "permute_backward")) set_traffic(op, 6, 2, 0);
}

// Returns whether the GEMM gives the results of experts, or the gradients of their inputs.
bool ends_experts(const Operator& op) {
  return has_name(op, "expert_down_gemm") || has_name(op, "expert_up_gemm_dgrad");
}

// Returns a node's operators with the framework's copies between them.
Operators with_copies(const Operators& operators, bool sequential_experts) {
  Operators made;
  std::optional<AttentionCore> differentiated;  // core whose gradients are not concatenated yet
  for (const Operator& op : operators) {
    const bool attends = op.kind == Kernel::Kind::attention && op.core.has_value();
    if (attends && !op.backward) {
      for (Operator& copy : before_attention(*op.core)) made.push_back(std::move(copy));
    }
    if (differentiated && op.linear) {
      made.push_back(joined_gradients(*differentiated));
      differentiated.reset();
    }
    if (attends && op.backward) differentiated = op.core;
    made.push_back(op);
    copy_tokens(made.back());
    if (sequential_experts && ends_experts(op)) {
      const Tensor rows{op.m, op.n};
      made.push_back(memory_bound("concatenation", 4, rows));
    }
  }
  return made;
}

class TensorCopying final : public Strategy {
 public:
  explicit TensorCopying(const TensorCopiesParameters& p) : p_(p) {}

  // The copies are divided as the kernels beside them are. None of them writes the operand of a GEMM in FP8.
  StrategyOrder order() const override {
    return {.after = {"module_recomputation", "fused_accumulation", "reduced_precision"},
            .before = {"context_parallel", "tensor_parallel"}};
  }
  bool takes_part(const JobShape&) const override { return p_.copies != TensorCopies::none; }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    const bool several = p_.copies == TensorCopies::megatron_core_sequential && graph.model.routed &&
                         graph.mesh.size("ep") < graph.model.routed->experts.count;
    for (LayerGraph& layer : graph.layers) {
      for (Chain* chain : {&layer.forward, &layer.backward}) {
        for (GraphNode& node : *chain) node.operators = with_copies(node.operators, several);
      }
    }
  }

 private:
  TensorCopiesParameters p_;
};

const Registration<Strategy> kTensorCopies{
    "tensor_copies", "kernels that only copy tensors between those that compute, as a framework runs them",
    ptdp_keys(Parameters<TensorCopiesParameters>().choice(
        "tensor_copies", &TensorCopiesParameters::copies,
        {{"none", TensorCopies::none},
         {"megatron_core", TensorCopies::megatron_core},
         {"megatron_core_sequential", TensorCopies::megatron_core_sequential}},
        "copies of tensors between kernels: none; megatron_core, those around attention and in the sum of "
        "experts by token; or megatron_core_sequential, also those around experts that are computed "
        "one after the other")),
    [](const TensorCopiesParameters& p, const ConfigNode&) { return std::make_unique<TensorCopying>(p); }};

}  // namespace
}  // namespace netsim
