// Sublayers: the sublayers of transformers of all kinds, operator by operator. These are attention to the
// layer's own tokens or to those of another sequence, and an MLP. Each follows a sum with the residual and a
// norm (Vaswani et al., arXiv 1706.03762). Models of kind gpt and llama have operators of their own; these
// are for encoders, encoder-decoders and similar models.
//
// The place of the norm (before a sublayer, as in T5 and ViT, or behind it, as in BERT) changes no kernel.
// Dimensions are those of make_transformer(): `heads`, `inner`, with a partial sum behind each sublayer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/training/model/operators.h"

namespace netsim {

struct SublayerShape {
  std::int64_t hidden = 0;
  std::int64_t heads = 0, head_size = 0;  // heads x head_size need not be hidden (T5-11B)
  std::int64_t inner = 0;
  // Tokens of a sequence, and tokens that attention reads.
  std::int64_t queries = 0, keys = 0;
  std::int64_t microbatch = 1;
  std::int64_t gradient_bytes = 2;
  // Attention is one kernel (FlashAttention); otherwise GEMMs with the scores between them.
  bool fused = false;
  bool biases = true;       // biases of the GEMMs and of the norms
  bool dropout = true;      // dropout of scores and of a sublayer's output
  bool score_bias = false;  // a tensor of their size is added to the scores (T5's relative positions)
  std::string activation = "gelu";
};

// Sublayer: its forward begins with its norm and ends with the sum over heads or inner.
struct Sublayer {
  std::string name;
  std::vector<Operator> forward;
  Dimension over = Dimension::heads;
  std::vector<ModelPart> backward;  // without the backward of the norm
  std::vector<Tensor> parameters;   // with the parameters of the norm
};

class Sublayers {
 public:
  explicit Sublayers(SublayerShape shape);

  Sublayer attention() const;  // attention to the layer's own tokens
  // Returns the attention to `keys` tokens of another sequence, whose gradients are summed up.
  Sublayer cross_attention() const;
  Sublayer mlp() const;

  // Returns a layer of these sublayers. Behind each one, before the norm of the next, is a sum with the
  // residual.
  ModelLayer layer(const std::string& name, const std::vector<Sublayer>& sublayers) const;
  // Return the operators and parameters of a separate norm, as at the end of a stack.
  Operator norm_forward() const;
  Operator norm_backward() const;
  std::vector<Tensor> norm_parameters() const;

  // Tokens of a divided sequence.
  Tensor part() const { return {{tokens_.size, Dimension::sequence}, hidden_}; }
  Tensor all() const { return {tokens_, hidden_}; }
  const Extent& hidden() const { return hidden_; }
  const Extent& tokens() const { return tokens_; }

 private:
  Tensor read() const { return {read_, hidden_}; }  // the other sequence
  Tensor queries() const { return {tokens_, heads_}; }
  Tensor keys() const { return {read_, heads_}; }
  Tensor scores() const { return {batch_heads_, query_tokens_, key_tokens_}; }
  PartialSum sum(const char* name, Dimension over, Tensor tensor) const;
  Operator in_core_of(Operator op) const;
  void add_core(std::vector<Operator>& operators) const;
  void add_core_backward(std::vector<Operator>& operators) const;
  Operator residual_forward() const;
  std::vector<Operator> residual_backward() const;
  void add_bias(std::vector<Tensor>& parameters, Extent extent) const;

  SublayerShape s_;
  Extent hidden_, tokens_, read_, query_tokens_, key_tokens_, head_size_, heads_, batch_heads_, inner_;
};

}  // namespace netsim
