// The sublayers that transformers of all kinds are made of, operator by operator: attention to one's own
// tokens or to those of another sequence, and an MLP, each behind a sum with the residual and a norm
// (Vaswani et al., arXiv 1706.03762). Models of kind gpt and llama have writings of their own; these are for
// encoders, encoder-decoders and what else is built alike.
//
// Where the norm stands (before a sublayer, as in T5 and ViT, or behind it, as in BERT) changes no kernel.
// Dimensions as make_transformer()'s: `heads`, `inner`, with a partial sum behind each sublayer.
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
  std::int64_t queries = 0, keys = 0;  // tokens of a sequence, and of those that attention reads
  std::int64_t microbatch = 1;
  std::int64_t gradient_bytes = 2;
  bool fused = false;   // attention is one kernel (FlashAttention), else GEMMs with the scores between them
  bool biases = true;   // of the GEMMs, and of the norms
  bool dropout = true;  // of scores and of what a sublayer gives
  bool score_bias = false;  // something is added to the scores, of their size (T5's relative positions)
  std::string activation = "gelu";
};

// A sublayer, whose forward begins with its norm and ends with the sum over heads or inner.
struct Sublayer {
  std::string name;
  std::vector<Operator> forward;
  Dimension over = Dimension::heads;
  std::vector<ModelPart> backward;  // without the norm's
  std::vector<Tensor> parameters;   // with the norm's
};

class Sublayers {
 public:
  explicit Sublayers(SublayerShape shape);

  Sublayer attention() const;        // to the layer's own tokens
  Sublayer cross_attention() const;  // to `keys` tokens of another sequence, whose gradients are summed up
  Sublayer mlp() const;

  // A layer of these: behind each one a sum with the residual, before the next one's norm.
  ModelLayer layer(const std::string& name, const std::vector<Sublayer>& sublayers) const;
  // A norm of its own, as at the end of a stack.
  Operator norm_forward() const;
  Operator norm_backward() const;
  std::vector<Tensor> norm_parameters() const;

  Tensor part() const { return {{tokens_.size, Dimension::sequence}, hidden_}; }  // of a divided sequence
  Tensor all() const { return {tokens_, hidden_}; }
  const Extent& hidden() const { return hidden_; }
  const Extent& tokens() const { return tokens_; }

 private:
  Tensor read() const { return {read_, hidden_}; }  // the other sequence's
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
