// Reduced precision: the GEMMs of the body's weight matrices, forward and backward, run in FP8 or less.
// Attention, embedding, logits and everything between the GEMMs stay in half precision. The scaling says
// which kernels write the operands.
// - tensor: as NVIDIA's Transformer Engine, which scales whole tensors by their earlier values. A
//   memory-bound kernel before the GEMM (a norm, an activation) writes the operand in the reduced precision,
//   as Transformer Engine fuses the cast. Without such a kernel, a cast kernel reads 2 bytes and writes the
//   value and its transpose. With `fused_casts: norms` only norms do so, as in Megatron-Core, whose layers
//   are TELayerNormColumnParallelLinear, its own activation, and TERowParallelLinear (gpt_layer_specs.py).
//   What sequence parallelism gathers in the backward is then transposed by a kernel of its own, which wgrad
//   needs (grad_output_preprocess() and ln_out_total_t of Transformer Engine 1). Ranks that divide an expert
//   gather its tokens in half precision, and cast all of them (MoEAlltoAllTokenDispatcher in
//   moe/token_dispatcher.py). Transformer Engine does not know of that gather (explicit_expert_comm).
//   GEMMs in FP8 need transposed operands in the backward, except on Blackwell: `transposed_operands: false`
//   (is_non_tn_fp8_gemm_supported() in pytorch/utils.py of Transformer Engine 2). Casts then write values
//   only. Transformer Engine accumulates the backward's GEMMs in fp32 (_2X_ACC_DGRAD), the forward's less
//   exactly.
// - blocks: as DeepSeek-V3 (arXiv 2412.19437, sections 3.3.2, 3.3.3 and 3.5.2). It scales each 128 elements
//   of a token, and 128 x 128 of a weight, by their present values. A cast kernel runs before each GEMM, and
//   each 128 elements get a scale of 4 bytes.
//
// With blocks, a forward's cast reads 2 bytes and writes 1. A gradient is written twice, scaled along the
// channels for the gradient of the input and along the tokens for that of the weights. The saved input is
// scaled anew along the tokens (read 1, write 1) for the gradients of weights. Tokens that are dispatched to
// experts in FP8 are not cast again. Weights are not cast, because they change once a step.
#include <algorithm>
#include <utility>
#include <vector>

#include "sim/training/strategy/fp8_scales.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

enum class Scaling : std::uint8_t { tensor, blocks };
enum class FusedCasts : std::uint8_t { all, norms };
struct PrecisionParameters {
  Precision precision = Precision::half;
  Scaling scaling = Scaling::tensor;
  FusedCasts fused_casts = FusedCasts::all;
  bool transposed_operands = true;
};

// ReducedGemms: rewrites the GEMMs of a graph.
class ReducedGemms {
 public:
  // `dispatched`: tokens and their gradients reach the experts in this precision. `gathered`: sequence
  // parallelism gathers operands.
  ReducedGemms(const PrecisionParameters& p, bool dispatched, bool gathered)
      : p_(p),
        dispatched_(dispatched),
        transposes_(gathered && p.fused_casts == FusedCasts::norms && p.transposed_operands),
        cast_bytes_(p.transposed_operands ? 4 : 3) {}

  void apply(TrainingGraph& graph) const {
    for (LayerGraph& layer : graph.layers) {
      for (Saved& saved : layer.saved) {
        const bool operand = saved.kind == Saved::Kind::operand || saved.kind == Saved::Kind::also_operand;
        if (operand) saved.bits_per_element = operand_bits(p_.precision);
      }
      for (Chain* chain : {&layer.forward, &layer.backward}) {
        const bool backward = chain == &layer.backward;
        for (std::size_t i = 0; i < chain->size(); ++i) {
          std::vector<Operator>& operators = (*chain)[i].operators;
          operators = p_.scaling == Scaling::tensor ? by_tensor(operators, backward)
                                                    : by_blocks(operators, backward, arrives(*chain, i));
        }
      }
    }
  }

 private:
  // Returns whether a node's input arrives from other ranks in reduced precision.
  bool arrives(const Chain& chain, std::size_t i) const {
    return dispatched_ && i > 0 && chain[i - 1].kind == GraphNode::Kind::exchange &&
           chain[i - 1].exchange.to_experts;
  }

  // Returns whether the kernel writes the operand of the next GEMM in reduced precision.
  bool casts(const Operator& op) const {
    const bool norm = op.module == Module::norm || op.name == "layer_norm";
    return op.kind == Kernel::Kind::memory && (p_.fused_casts == FusedCasts::all || norm);
  }

  // Returns whether the tokens of an expert are gathered before they are cast.
  bool casts_behind_gather(const Operator& op) const {
    return p_.fused_casts == FusedCasts::norms && op.gathers && op.gathers->over == Dimension::expert_inner;
  }

  std::vector<Operator> by_tensor(std::vector<Operator>& operators, bool backward) const {
    std::vector<Operator> result;
    for (Operator& op : operators) {
      const bool exact = op.linear && backward && !op.recomputed;
      const bool cast_behind = op.linear && !op.weight_gradient && casts_behind_gather(op);
      const bool transposed = exact && transposes_ && op.gathers && !cast_behind;
      if (op.linear) {
        const bool written_so =
            !result.empty() && casts(result.back()) && result.back().recomputed == op.recomputed;
        // The cast reads 2 bytes and writes the value and, where it is needed, its transpose.
        if (cast_behind) {
          result.push_back(gathering(*op.gathers, memory_bound("cast", cast_bytes_, {op.m, op.k})));
          op.gathers.reset();
        } else if (!op.weight_gradient && !written_so) {
          result.push_back(memory_bound("cast", cast_bytes_, operand(op)));
        }
        op.precision = p_.precision;
        op.backward = exact;
      }
      Operator transposition = transposed ? transpose(op) : Operator{};
      result.push_back(std::move(op));
      // It stands behind the GEMM, which sequence parallelism finds right behind the one before.
      if (transposed) result.push_back(std::move(transposition));
    }
    return result;
  }

  // `arrives` says that the input of the first GEMM is in reduced precision already, scaled along the
  // channels.
  std::vector<Operator> by_blocks(std::vector<Operator>& operators, bool backward, bool arrives) const {
    std::vector<Operator> result;
    for (Operator& op : operators) {
      if (op.linear) {
        const Tensor tensor = operand(op);
        if (op.weight_gradient) {
          result.push_back(computing_weights(cast("cast_kept", 1, 1, tensor)));
        } else if (!backward || op.recomputed) {
          if (!arrives) result.push_back(cast("cast", 2, 1, tensor));
          arrives = false;
        } else if (arrives) {
          result.push_back(computing_weights(cast("cast_gradient", 1, 1, tensor)));
          arrives = false;
        } else {
          result.push_back(cast("cast_gradient", 2, 2, tensor));
        }
        op.precision = p_.precision;
      }
      result.push_back(std::move(op));
    }
    return result;
  }

  // Returns what a GEMM reads besides weights, before a gather.
  static Tensor operand(const Operator& op) {
    const Dimension along = op.gathers && !op.weight_gradient ? Dimension::sequence : op.m.along;
    return {{op.m.size, along}, op.k};
  }
  static Operator cast(const char* name, std::int64_t read, std::int64_t written, const Tensor& tensor) {
    // The number of scales is the same along either extent. For token copies the router gives their number.
    Tensor scales = tensor;
    Extent& scaled = scales.back().along == Dimension::routed ? scales.front() : scales.back();
    scaled.size = std::max<std::int64_t>(1, scaled.size / kScaledElements);
    return memory_bound(name, {{read + written, tensor}, {kScaleBytes * written, scales}});
  }

  // Returns the transposition of what a GEMM of the backward gathered in FP8 (read 1, write 1).
  static Operator transpose(const Operator& op) {
    const Tensor gathered = op.weight_gradient ? Tensor{op.k, op.m} : Tensor{op.m, op.k};
    Operator kernel = memory_bound("transpose", 2, gathered);
    return op.weight_gradient ? computing_weights(std::move(kernel)) : kernel;
  }

  const PrecisionParameters& p_;
  bool dispatched_, transposes_;
  std::int64_t cast_bytes_;  // bytes that a cast of a whole tensor moves for each element
};

class ReducedPrecision final : public Strategy {
 public:
  explicit ReducedPrecision(const PrecisionParameters& p) : p_(p) {}

  StrategyOrder order() const override { return {.before = {"context_parallel", "tensor_parallel"}}; }
  void describe(JobShape& job) const override { job.precision = p_.precision; }
  bool takes_part(const JobShape&) const override { return p_.precision != Precision::half; }
  void check(const JobShape& job) const override {
    if (p_.scaling == Scaling::blocks && p_.precision != Precision::fp8)
      job.key("scaling").fail("blocks are those of FP8: precision has to be fp8");
    if (p_.precision != Precision::half && !job.some_operator([](const Operator& op) { return op.linear; }))
      job.key("precision").fail("no layer of the model has GEMMs that are computed in it: it has to be half");
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    const bool dispatched = job.dispatch_precision == p_.precision && job.expert > 1 &&
                            job.expert_exchange == ExpertExchange::dispatch;
    ReducedGemms(p_, dispatched, job.sequence && job.tensor > 1).apply(graph);
  }

 private:
  PrecisionParameters p_;
};

const Registration<Strategy> kReducedPrecision{
    "reduced_precision", "GEMMs of the layers' weights run in FP8 or FP4",
    ptdp_keys(Parameters<PrecisionParameters>()
                  .choice("precision", &PrecisionParameters::precision,
                          {{"half", Precision::half}, {"fp8", Precision::fp8}, {"fp4", Precision::fp4}},
                          "precision of the GEMMs of the layers' weights")
                  .choice("scaling", &PrecisionParameters::scaling,
                          {{"tensor", Scaling::tensor}, {"blocks", Scaling::blocks}},
                          "how operands in FP8 are scaled: each tensor as a whole, cast by the kernel that "
                          "writes it (Transformer Engine), or in blocks of 128 elements, which kernels of "
                          "their own cast (DeepSeek-V3)")
                  .choice("fused_casts", &PrecisionParameters::fused_casts,
                          {{"all", FusedCasts::all}, {"norms", FusedCasts::norms}},
                          "scaling: tensor: which memory-bound kernels before a GEMM write its operand in "
                          "FP8; behind others a kernel of its own casts it (Megatron-Core: norms). With "
                          "norms, tokens of an expert are gathered in half precision")
                  .flag("transposed_operands", &PrecisionParameters::transposed_operands,
                        "scaling: tensor: casts write a transpose, too, which GEMMs in FP8 need in the "
                        "backward before Blackwell (Transformer Engine)")),
    [](const PrecisionParameters& p, const ConfigNode&) { return std::make_unique<ReducedPrecision>(p); }};

}  // namespace
}  // namespace netsim
