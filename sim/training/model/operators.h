// A model as layers of operators, before anybody has divided it: what a strategy reads and what it may split.
//
// Every extent of a tensor is a number and the name of the dimension that it runs along. A strategy divides
// dimensions, not operators: Sharding says into how many parts each is cut, and an operator's kernel on one
// rank follows from that. Where an operator sums over a dimension, its result is a partial sum as soon as the
// dimension is divided; the model says where (PartialSum), and a strategy says what is done about it (the f
// and g of Shoeybi et al., arXiv 1909.08053).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/units.h"
#include "sim/workload/routing/experts.h"
#include "sim/workload/task.h"

namespace netsim {

// What an extent runs along. `whole` is never divided. `tokens`: those of a microbatch. `sequence`: the same
// where every token is computed for itself (norms, sums with the residual), between the parts that heads,
// inner or vocabulary divide. `keys`: the tokens that a query attends to. `experts`: of a layer;
// `expert_inner`: of each; `routed`: copies of tokens that the experts of a rank take. These are dealt out to
// the experts in a batch of kernels; how many they are depends on the router, and dividing experts does not
// change their number where all get as many: a rank has fewer experts, and each gets tokens of more ranks.
// `tables`: embedding tables of a recommendation model, or rows of each.
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

// What a layer's backward may compute again, so that its results are not kept (Megatron-Core's
// --recompute-modules layernorm, mla_up_proj, moe_act): norms; of latent attention the projections up, with
// the rotation behind them; activations of MLPs and experts.
enum class Module : std::uint8_t { none, norm, latent_up, activation };

struct Extent {
  std::int64_t size = 1;
  Dimension along = Dimension::whole;
};
using Tensor = std::vector<Extent>;

// Into how many parts each dimension is cut.
class Sharding {
 public:
  Sharding() { parts_.fill(1); }
  // Of a rank that the router gives another number of copies than all get on average.
  void set_routed(std::int64_t copies) { routed_ = copies; }
  void divide(Dimension dimension, std::int64_t parts) { parts_[index(dimension)] *= parts; }
  std::int64_t parts(Dimension dimension) const { return parts_[index(dimension)]; }
  // Of one rank: the parts divide the sizes.
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

// Bytes that a memory-bound kernel reads and writes for each element of a tensor.
struct Traffic {
  std::int64_t bytes_per_element = 0;
  Tensor tensor;
};

// What an operator reads of all tokens, where it needs all: where the sequence is divided, that has to be
// gathered.
struct Gather {
  Tensor tensor;
  bool kept = false;  // since the forward, so that it can be gathered beside the operator before this one
  // Among the ranks that `sequence` is divided among, or, of copies of tokens, that divide the experts' inner
  // dimension.
  Dimension over = Dimension::sequence;
};

// What the core of the attention (scores, softmax, the sum of values; all that computes tokens with other
// tokens) reads and writes, for those who divide the tokens or compute it again.
struct AttentionCore {
  Tensor queries, keys, values, output;
};

// What an operator of a forward keeps for the backward, which is an activation in memory until then
// (Korthikanti et al., arXiv 2205.05198, section 4.1, count the same).
struct Saved {
  // `operand`: what a GEMM of weights reads, which is kept as it is multiplied, in reduced precision too;
  // `also_operand`: the same of a tensor that another operator keeps in half precision anyway, so that it
  // takes memory of its own only where the GEMM's precision is another one; `of_core`: made inside the core
  // of the attention, which can be computed again of queries, keys and values.
  enum class Kind : std::uint8_t { plain, operand, also_operand, of_core };
  std::int64_t bits_per_element = 16;
  Tensor tensor;
  Kind kind = Kind::plain;
  Module of = Module::none;  // whose result it is
};

// One kernel of the whole model: a GEMM of batch x (m x k)(k x n), fused attention (Kernel::Kind), or a
// kernel bound by memory. A GEMM with `traffic` of its own moves that through the memory instead of its
// operands (a convolution, whose matrix of patches is never written).
struct Operator {
  Kernel::Kind kind = Kernel::Kind::memory;
  std::string name;
  Extent m, n, k, batch;
  std::vector<Traffic> traffic;
  // Computes gradients of parameters: nothing but the optimizer waits for it, so that a schedule may put it
  // off.
  bool weight_gradient = false;
  // A GEMM of a weight matrix of the body's layers, which training in reduced precision computes in it.
  bool linear = false;
  Precision precision = Precision::half;  // of GEMMs and attention
  std::int64_t pieces = 1;                // Kernel::pieces; m is that of one
  std::optional<Gather> gathers;
  std::optional<AttentionCore> core;      // of operators of the attention's core
  bool backward = false;                  // of attention
  bool accumulates = false;               // of a GEMM: Kernel::accumulates
  std::int64_t result_bytes = 2;          // of an element that a GEMM writes
  std::int64_t held_multiprocessors = 0;  // Kernel::held_multiprocessors
  Module module = Module::none;           // of a forward: what it is a part of
  bool recomputed = false;                // of a backward: computes again what a forward did
  bool of_copies = false;    // makes copies of tokens for their experts, or sums them up by token
  std::vector<Saved> saved;  // of operators of a forward
};
// Makers of operators.
Operator gemm(const char* name, Extent m, Extent n, Extent k, Extent batch = {});
Operator memory_bound(const char* name, std::vector<Traffic> traffic);
Operator memory_bound(const char* name, std::int64_t bytes_per_element, Tensor tensor);
Operator computing_weights(Operator op);  // sets weight_gradient
Operator linear(Operator op);             // sets linear
// Returns the GEMM of a weight matrix, and the one that computes its gradient. A grouped GEMM has `batch`
// matrices.
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
// In half precision unless the GEMM is in a lower one.
inline Saved saved_operand(Tensor tensor) { return {16, std::move(tensor), Saved::Kind::operand}; }
inline Saved saved_elsewhere(Tensor tensor) { return {0, std::move(tensor), Saved::Kind::also_operand}; }
inline Saved result_of(Module module, Saved saved) {
  saved.of = module;
  return saved;
}
// Adding a microbatch's gradients of weights, in half precision, to the sum of `gradient_bytes` a parameter:
// reads both and writes the sum. Its traffic has an entry for each of the weights.
Operator accumulation(const std::vector<Tensor>& weights, std::int64_t gradient_bytes);
bool is_accumulation(const Operator& op);

Kernel kernel_of(const Operator& op, const Sharding& sharding);
Work work_of(const std::string& name, const std::vector<Operator>& operators, const Sharding& sharding);

// A result that is a partial sum (or maximum) where `over` is divided.
struct PartialSum {
  std::string name;  // of the communication that completes it, behind the axis: "forward" of "tp_forward"
  Dimension over = Dimension::whole;
  Tensor tensor;
  std::int64_t element_bytes = 2;
  // What follows computes each token for itself, so a divided sequence needs no more than its part of the
  // sum.
  bool by_token = false;
};

// Copies of tokens, or gradients of theirs, go to the ranks of their experts or come back, where experts are
// divided; or what is looked up in embedding tables, where these are.
struct Exchange {
  std::string name;  // of the communication, behind the axis: "dispatch_forward" of "ep_dispatch_forward"
  bool to_experts = true;
  bool asks = false;                    // ranks have to tell each other first how many copies come
  Dimension over = Dimension::experts;  // or tables, whose ranks exchange `tensor`
  Tensor tensor = {};                   // of a rank's own samples, of all tables
  std::int64_t element_bytes = 2;
  // So many of the parts behind it do not need what it brings, but what it waits for itself.
  std::uint32_t beside = 0;
};

// Operators that run one after the other, and what is to be summed up after them, and exchanged then.
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
  // Activations that it gives to the next layer; empty: Model::boundary.
  Tensor output = {};
  // Embedding tables, of which an iteration reads and updates few rows: the layer's operators update them, no
  // optimizer does, and their gradients are not summed up among replicas.
  std::vector<Tensor> tables = {};
};

// The first layer turns tokens into activations, the last one activations into a loss; the body lies between
// them.
struct Model {
  // What its routed experts are, and the tokens of a microbatch that they are for.
  struct Routed {
    ExpertsModel experts;
    std::int64_t tokens = 0, hidden = 0;
  };
  ModelLayer first, last;
  std::vector<ModelLayer> kinds;    // of layers of the body
  std::vector<std::uint32_t> body;  // the kind of each layer, in order
  Tensor boundary;                  // the activations between two layers
  std::int64_t boundary_bytes = 2;  // of an element
  // Parameters that first and last layer share (tied embeddings): where the two are on different ranks, each
  // has a copy, and their gradients are summed. Empty: none.
  Tensor shared;
  std::int64_t gradient_bytes = 2;  // of a parameter's gradient
  std::optional<Routed> routed = {};
};

std::int64_t parameters_of(const std::vector<Tensor>& tensors, const Sharding& sharding);
bool of_routed_experts(const Tensor& parameters);
// Of the whole model, undivided; what its ends share counts once.
std::int64_t parameters_of(const Model& model);
// FLOPs of GEMMs and attention in the forward of a whole microbatch, twice their multiply-adds.
double forward_flops(const Model& model);
// The most bytes that a tensor of the model, or all its parameters, may take; an upper bound.
double largest_bytes(const Model& model);

// Adam in mixed precision over this many parameters, of which `reduced` are kept in FP8; bytes per parameter
// in operators.cpp.
Work optimizer_work(std::int64_t parameters, std::int64_t gradient_bytes, std::int64_t reduced = 0);

}  // namespace netsim
