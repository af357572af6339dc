// Operators: a model as layers of operators, before any strategy has divided it.
//
// Every extent of a tensor is a number and the dimension that it runs along. A strategy divides dimensions,
// not operators. Sharding says into how many parts each dimension is cut, which gives an operator's kernel on
// one rank.
//
// Where an operator sums over a dimension, its result is a partial sum as soon as the dimension is divided.
// The model says where (PartialSum), and a strategy adds the communication (the f and g of Shoeybi et al.,
// arXiv 1909.08053).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/compute/kernel.h"
#include "sim/core/units.h"
#include "sim/workload/routing/experts.h"
#include "sim/workload/task.h"

namespace netsim {

// Dimension: the dimension of the model that an extent runs along. `whole` is never divided. `tokens` are
// those of a microbatch. `sequence` are the same tokens where each is computed for itself (norms, sums with
// the residual), between the parts that heads, inner or vocabulary divide. `keys` are the tokens that a query
// attends to.
//
// `experts` are those of a layer, `expert_inner` is the inner dimension of each. `routed` are the copies of
// tokens that the experts of a rank process, in a batch of kernels. The router determines their number.
// Dividing experts among more ranks does not change it if all experts get equally many tokens. A rank then
// has fewer experts, and each gets tokens of more ranks.
//
// `tables` are the embedding tables of a recommendation model, or rows of each.
enum class Dimension : std::uint8_t {
  whole,
  heads,
  inner,
  vocabulary,
  sequence,
  tokens,
  keys,
  experts,
  expert_inner,
  routed,
  tables
};
inline constexpr std::size_t kDimensions = 11;

// Module: a part of a layer whose results the backward may compute again, so that they are not kept. They are
// Megatron-Core's --recompute-modules layernorm, mla_up_proj, moe_act. `latent_up` are the up-projections of
// latent attention with the rotation behind them, `activation` the activations of MLPs and experts.
enum class Module : std::uint8_t { none, norm, latent_up, activation };

struct Extent {
  std::int64_t size = 1;
  Dimension along = Dimension::whole;
};
using Tensor = std::vector<Extent>;

// Sharding: into how many parts each dimension is cut.
class Sharding {
 public:
  Sharding() { parts_.fill(1); }
  // Sets the number of token copies of a rank that gets another number than the average.
  void set_routed(std::int64_t copies) { routed_ = copies; }
  void divide(Dimension dimension, std::int64_t parts) { parts_[index(dimension)] *= parts; }
  std::int64_t parts(Dimension dimension) const { return parts_[index(dimension)]; }
  // Returns the size on one rank. The parts have to divide the size.
  std::int64_t local(const Extent& extent) const {
    if (extent.along == Dimension::routed && routed_) return *routed_;
    return extent.size / parts(extent.along);
  }
  std::int64_t local(const Tensor& tensor) const {
    std::int64_t elements = 1;
    for (const Extent& extent : tensor) elements *= local(extent);
    return elements;
  }

 private:
  static std::size_t index(Dimension dimension) { return static_cast<std::size_t>(dimension); }
  std::array<std::int64_t, kDimensions> parts_{};
  std::optional<std::int64_t> routed_;
};

// Traffic: the bytes that a memory-bound kernel reads and writes for each element of a tensor.
struct Traffic {
  std::int64_t bytes_per_element = 0;
  Tensor tensor;
  bool atomic = false;  // each element is added to one in memory by an atomic operation
};

// Gather: a tensor of all tokens that an operator reads. It has to be gathered where the sequence is divided.
struct Gather {
  Tensor tensor;
  // Kept since the forward, so that it can be gathered beside the operator before this one.
  bool kept = false;
  // The dimension whose ranks gather. `sequence` means those that divide the sequence. For token copies it is
  // the one whose ranks divide the experts' inner dimension.
  Dimension over = Dimension::sequence;
};

// AttentionCore: the tensors that the core of the attention reads and writes. The core is everything that
// computes tokens with other tokens: scores, softmax, the sum of values. Strategies that divide the tokens or
// compute the core again use it.
struct AttentionCore {
  Tensor queries, keys, values, output;
};

// Saved: a tensor that an operator of a forward keeps for the backward, which is an activation in memory
// until then. Korthikanti et al. count the same (arXiv 2205.05198, section 4.1).
struct Saved {
  // `operand` is an input of a weight GEMM, kept in the GEMM's precision. `also_operand` is an input that
  // another operator keeps in half precision anyway, so it takes memory only where the GEMM's precision is a
  // different one. `of_core` is made inside the core of the attention, which can compute it again from
  // queries, keys and values.
  enum class Kind : std::uint8_t { plain, operand, also_operand, of_core };
  std::int64_t bits_per_element = 16;
  Tensor tensor;
  Kind kind = Kind::plain;
  Module of = Module::none;  // the module whose result it is
};

// Operator: one kernel of the whole model. It is a GEMM of batch x (m x k)(k x n), fused attention
// (Kernel::Kind), or a memory-bound kernel. A GEMM with `traffic` moves that through the memory instead of
// its operands (a convolution, whose matrix of patches is never written).
struct Operator {
  Kernel::Kind kind = Kernel::Kind::memory;
  std::string name;
  Extent m, n, k, batch;
  // Each matrix of `batch` has a kernel of its own, one after the other. The traffic of a memory-bound kernel
  // is divided evenly among as many.
  bool one_by_one = false;
  std::vector<Traffic> traffic;
  // Computes gradients of parameters. Only the optimizer waits for it, so that a schedule may put it off.
  bool weight_gradient = false;
  // A GEMM of a weight matrix of the body's layers, which training in reduced precision computes in that
  // precision.
  bool linear = false;
  Precision precision = Precision::half;  // for GEMMs and attention
  std::int64_t pieces = 1;                // Kernel::pieces; m is that of one piece
  std::optional<Gather> gathers;
  std::optional<AttentionCore> core;      // for operators of the attention's core
  bool backward = false;                  // Kernel::backward
  bool accumulates = false;               // for a GEMM: Kernel::accumulates
  std::int64_t result_bytes = 2;          // bytes of an element that a GEMM writes
  std::int64_t held_multiprocessors = 0;  // Kernel::held_multiprocessors
  KernelSlice slice;                      // Kernel::slice
  Module module = Module::none;           // for a forward: the module that it belongs to
  bool recomputed = false;                // for a backward: computes again what a forward computed
  bool of_copies = false;    // makes copies of tokens for their experts, or sums them up by token
  std::vector<Saved> saved;  // for operators of a forward
};
// Functions that make operators.
Operator gemm(const char* name, Extent m, Extent n, Extent k, Extent batch = {});
Operator memory_bound(const char* name, std::vector<Traffic> traffic);
Operator memory_bound(const char* name, std::int64_t bytes_per_element, Tensor tensor);
Operator computing_weights(Operator op);  // sets weight_gradient
Operator linear(Operator op);             // sets linear
// linear_gemm() returns the GEMM of a weight matrix, weight_gradient_gemm() the one that computes its
// gradient. A grouped GEMM has `batch` matrices.
inline Operator linear_gemm(const char* name, Extent m, Extent n, Extent k, Extent batch = {}) {
  return linear(gemm(name, m, n, k, batch));
}
inline Operator weight_gradient_gemm(const char* name, Extent m, Extent n, Extent k, Extent batch = {}) {
  return computing_weights(linear_gemm(name, m, n, k, batch));
}
Operator gathering(Gather gather, Operator op);
Operator in_core(AttentionCore core, Operator op);
Operator saving(std::vector<Saved> saved, Operator op);
Operator part_of(Module module, Operator op);
Operator of_copies(Operator op);  // sets of_copies
inline Saved saved(std::int64_t bytes_per_element, Tensor tensor) {
  return {8 * bytes_per_element, std::move(tensor), Saved::Kind::plain};
}
inline Saved saved_of_core(std::int64_t bytes_per_element, Tensor tensor) {
  return {8 * bytes_per_element, std::move(tensor), Saved::Kind::of_core};
}
// Both are in half precision unless the GEMM has a lower one.
inline Saved saved_operand(Tensor tensor) { return {16, std::move(tensor), Saved::Kind::operand}; }
inline Saved saved_elsewhere(Tensor tensor) { return {0, std::move(tensor), Saved::Kind::also_operand}; }
inline Saved result_of(Module module, Saved saved) {
  saved.of = module;
  return saved;
}
// Returns the kernel that adds a microbatch's gradients of weights, in half precision, to the sum, which has
// `gradient_bytes` a parameter. It reads both and writes the sum. Its traffic has an entry for each of the
// weights.
Operator accumulation(const std::vector<Tensor>& weights, std::int64_t gradient_bytes);
bool is_accumulation(const Operator& op);

Kernel kernel_of(const Operator& op, const Sharding& sharding);
Work work_of(const std::string& name, const std::vector<Operator>& operators, const Sharding& sharding);

// PartialSum: a result that is a partial sum (or maximum) where `over` is divided.
struct PartialSum {
  std::string name;  // name of the communication behind the axis: "forward" of "tp_forward"
  Dimension over = Dimension::whole;
  Tensor tensor;
  std::int64_t element_bytes = 2;
  // The following operators compute each token for itself, so that a divided sequence needs only its part of
  // the sum.
  bool by_token = false;
};

// Exchange: copies of tokens, or their gradients, go to the ranks of their experts or come back, where
// experts are divided. For embedding tables it exchanges indices and rows, where the tables are divided.
struct Exchange {
  std::string name;  // name of the communication behind the axis: "dispatch_forward" of "ep_dispatch_forward"
  bool to_experts = true;
  // Ranks have to exchange first how many copies come.
  bool asks = false;
  // The dimension that is divided; for `tables`, the ranks exchange `tensor`.
  Dimension over = Dimension::experts;
  Tensor tensor = {};  // tensor of a rank's own samples, for all tables
  std::int64_t element_bytes = 2;
  // The number of parts behind the exchange that do not wait for its result. They wait only for what the
  // exchange itself waits for.
  std::uint32_t beside = 0;
};

// ModelPart: operators that run one after the other, then a sum and an exchange of their results.
struct ModelPart {
  std::string name;  // "attention_forward"
  std::vector<Operator> operators;
  std::optional<PartialSum> sum;
  std::optional<Exchange> exchange = {};
};

struct ModelLayer {
  std::string name;  // "layer"
  std::vector<ModelPart> forward, backward;
  std::vector<Tensor> parameters;  // without those that the model shares between its ends
  // Activations that the layer gives to the next; empty: Model::boundary.
  Tensor output = {};
  // Embedding tables, of which an iteration reads and updates few rows. The layer's operators update them,
  // not the optimizer, and their gradients are not summed over replicas.
  std::vector<Tensor> tables = {};
};

// Model: the first layer turns tokens into activations, the last one activations into a loss. The body lies
// between them.
struct Model {
  // Routed: the routed experts, and the tokens of a microbatch that go to them.
  struct Routed {
    ExpertsModel experts;
    std::int64_t tokens = 0, hidden = 0;
  };
  ModelLayer first, last;
  std::vector<ModelLayer> kinds;    // kinds of layers of the body
  std::vector<std::uint32_t> body;  // the kind of each layer, in order
  Tensor boundary;                  // activations between two layers
  std::int64_t boundary_bytes = 2;  // bytes of an element of `boundary`
  // Parameters that first and last layer share (tied embeddings); empty: none. Where the two layers are on
  // different ranks, each has a copy, and the gradients of both are summed.
  Tensor shared;
  std::int64_t gradient_bytes = 2;  // bytes of a parameter's gradient
  std::optional<Routed> routed = {};
};

std::int64_t parameters_of(const std::vector<Tensor>& tensors, const Sharding& sharding);
bool of_routed_experts(const Tensor& parameters);
// Returns the number of parameters of the whole, undivided model. Parameters that its ends share count once.
std::int64_t parameters_of(const Model& model);
// Returns the FLOPs of GEMMs and attention in the forward of a whole microbatch, which are twice the
// multiply-adds.
double forward_flops(const Model& model);
// Returns an upper bound of the bytes that a tensor of the model, or all its parameters, take.
double largest_bytes(const Model& model);

// Returns the work of Adam in mixed precision over so many parameters, of which `reduced` are kept in FP8.
// The bytes per parameter are in operators.cpp.
Work optimizer_work(std::int64_t parameters, std::int64_t gradient_bytes, std::int64_t reduced = 0);

}  // namespace netsim
