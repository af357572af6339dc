// Tensor copies: kernels that a framework runs beside those that compute, because a kernel before or
// behind wants a tensor in another place. PyTorch makes them; a compiler or fused kernels would not.
// - Attention (megatron/core/transformer/attention.py). Queries, keys and values are views of one result.
// With
//   grouped queries, reshape() copies the queries, and the attention kernel's values have to be contiguous
//   (get_qkv_layout() of Transformer Engine). Backward, the three gradients are concatenated (SplitAlongDim).
// - Experts that are computed one after the other (SequentialMLP in moe/experts.py; moe_grouped_gemm: false).
//   Each has kernels of its own. Their results are concatenated (torch.cat), and backward the gradients of
//   their inputs (torch.split).
// - The sum by token (unpermute_with_padded_tokens() in moe/moe_utils.py). It multiplies each copy by its
//   probability, zeroes the sums, and adds the copies to them by scatter_add(). Backward gathers the
//   gradients, multiplies them by probabilities and by copies, and sums the latter. The gradient of
//   index_select() is zeroed and added to. Both additions are atomic operations.
//
// Each kernel reads and writes 2 bytes an element. scatter_add() reads a copy, and reads and writes the sum.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

enum class TensorCopies : std::uint8_t { none, megatron_core, megatron_core_sequential };
struct TensorCopiesParameters {
  TensorCopies copies = TensorCopies::none;
};

// A work has at most 500 kernels (ProgramLimits), and the backward of an expert has up to nine.
constexpr std::int64_t kMostInTurn = 50;

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

// CopyKernel: a kernel that works on copies of tokens, and then on the sums by token. It moves so many bytes
// an element of both. `adds`: it adds the copies to the sums by atomic operations.
struct CopyKernel {
  const char* name;
  std::int64_t of_copies, of_tokens;
  bool adds = false;
};

// CopyKernels: the kernels that stand for one of the model. `copies` is the entry of its traffic that has the
// copies; the other one has the tokens.
struct CopyKernels {
  const char* name;
  std::size_t copies;
  std::vector<CopyKernel> kernels;
};

const std::vector<CopyKernels>& copy_kernels() {
  static const std::vector<CopyKernels> all{
      {"unpermute", 0, {{"unpermute", 4, 0}, {"unpermute_zeroes", 0, 2}, {"unpermute_add", 6, 0, true}}},
      {"unpermute_backward",
       1,
       {{"unpermute_backward", 4, 0},
        {"unpermute_product_backward", 4, 0},
        {"score_product", 6, 0},
        {"score_sum", 2, 0}}},
      {"permute_backward", 0, {{"permute_zeroes", 0, 2}, {"permute_backward", 6, 0, true}}}};
  return all;
}

// Appends the operator, or the kernels that stand for it.
void append_copying(Operators& made, const Operator& op) {
  const std::vector<CopyKernels>& all = copy_kernels();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const CopyKernels& k) { return has_name(op, k.name); });
  if (found == all.end()) {
    made.push_back(op);
    return;
  }
  for (const CopyKernel& kernel : found->kernels) {
    Operator part = op;
    part.name = kernel.name;
    part.traffic.clear();
    if (kernel.of_copies > 0)
      part.traffic.push_back({kernel.of_copies, op.traffic[found->copies].tensor, kernel.adds});
    if (kernel.of_tokens > 0)
      part.traffic.push_back({kernel.of_tokens, op.traffic[1 - found->copies].tensor});
    if (&kernel != &found->kernels.front()) part.saved.clear();
    made.push_back(std::move(part));
  }
}

// Returns whether the GEMM gives the results of experts, or the gradients of their inputs.
bool ends_experts(const Operator& op) {
  return has_name(op, "expert_down_gemm") || has_name(op, "expert_up_gemm_dgrad");
}

// Makes each expert's kernels run after those of the expert before. Kernels that add gradients are excepted:
// a framework that computes experts one after the other adds them with their GEMMs.
void compute_in_turn(Operators& operators) {
  const auto grouped = std::find_if(operators.begin(), operators.end(),
                                    [](const Operator& op) { return op.batch.along == Dimension::experts; });
  if (grouped == operators.end()) return;
  const Extent experts = grouped->batch;
  for (Operator& op : operators) {
    if (is_accumulation(op) || op.pieces > 1) continue;
    op.batch = experts;
    op.one_by_one = true;
  }
}

// Returns a node's operators with the framework's copies between them.
Operators with_copies(const Operators& operators, bool sequential_experts) {
  Operators made, base = operators;
  if (sequential_experts) compute_in_turn(base);
  std::optional<AttentionCore> differentiated;  // core whose gradients are not concatenated yet
  for (const Operator& op : base) {
    const bool attends = op.kind == Kernel::Kind::attention && op.core.has_value();
    if (attends && !op.backward) {
      for (Operator& copy : before_attention(*op.core)) made.push_back(std::move(copy));
    }
    if (differentiated && op.linear) {
      made.push_back(joined_gradients(*differentiated));
      differentiated.reset();
    }
    if (attends && op.backward) differentiated = op.core;
    append_copying(made, op);
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
  void check(const JobShape& job) const override {
    if (p_.copies != TensorCopies::megatron_core_sequential || !job.has_experts()) return;
    const std::int64_t experts = job.model->experts()->count / std::max<std::int64_t>(1, job.expert);
    if (experts > kMostInTurn) {
      job.key("tensor_copies")
          .fail("megatron_core_sequential computes the experts of a rank in turn, at most " +
                std::to_string(kMostInTurn) + " of them; a rank has " + std::to_string(experts) +
                " (parallel.expert divides them)");
    }
  }
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
        "experts by token; or megatron_core_sequential, also those around experts, which are computed "
        "one after the other, each by kernels of its own")),
    [](const TensorCopiesParameters& p, const ConfigNode&) { return std::make_unique<TensorCopying>(p); }};

}  // namespace
}  // namespace netsim
