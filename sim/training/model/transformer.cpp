#include "sim/training/model/transformer.h"

#include <utility>

namespace netsim {
namespace {

class Transformer {
 public:
  Transformer(const TransformerModel& model, std::int64_t microbatch, std::int64_t gradient_bytes)
      : layers_(model.layers),
        tied_(model.tied),
        gradient_bytes_(gradient_bytes),
        hidden_{model.hidden},
        tokens_{model.sequence * microbatch, Dimension::tokens},
        sequence_{model.sequence},
        query_tokens_{model.sequence, Dimension::tokens},
        key_tokens_{model.sequence, Dimension::keys},
        head_size_{model.hidden / model.heads},
        heads_{model.hidden, Dimension::heads},
        qkv_{3 * model.hidden, Dimension::heads},
        batch_heads_{microbatch * model.heads, Dimension::heads},
        inner_{4 * model.hidden, Dimension::inner},
        vocabulary_{model.vocabulary, Dimension::vocabulary} {}

  Model make() const {
    Model model;
    model.first = embedding();
    model.kinds = {layer()};
    model.body.assign(static_cast<std::size_t>(layers_), 0);
    model.last = head();
    model.boundary = a();
    if (tied_) model.shared = words();
    model.gradient_bytes = gradient_bytes_;
    return model;
  }

 private:
  // Tensors: a() are activations where each token is computed for itself, all() those of all tokens. q() are
  // attention scores, z() logits.
  Tensor a() const { return {{tokens_.size, Dimension::sequence}, hidden_}; }
  Tensor all() const { return {tokens_, hidden_}; }
  Tensor a_by_heads() const { return {tokens_, heads_}; }
  Tensor a_inner() const { return {tokens_, inner_}; }
  Tensor q() const { return {batch_heads_, query_tokens_, key_tokens_}; }
  Tensor z() const { return {tokens_, vocabulary_}; }
  Tensor words() const { return {vocabulary_, hidden_}; }
  // Returns an end's parameters: `own`, and the words unless the ends share them.
  std::vector<Tensor> with_words(Tensor own) const {
    return tied_ ? std::vector<Tensor>{std::move(own)} : std::vector<Tensor>{words(), std::move(own)};
  }

  // Return GEMMs of weight matrices, and of their gradients.
  static Operator weights(const char* name, Extent m, Extent n, Extent k) {
    return linear(gemm(name, m, n, k));
  }
  static Operator wgrad(const char* name, Extent m, Extent n, Extent k) {
    return computing_weights(weights(name, m, n, k));
  }
  static Operator memory(const char* name, std::int64_t bytes_per_element, Tensor tensor) {
    return memory_bound(name, bytes_per_element, std::move(tensor));
  }
  Operator accumulation(const std::vector<Tensor>& weights) const {
    return netsim::accumulation(weights, gradient_bytes_);
  }
  Operator core(Operator op) const {
    return in_core({a_by_heads(), a_by_heads(), a_by_heads(), a_by_heads()}, std::move(op));
  }
  PartialSum sum(const char* name, Dimension over) const { return {name, over, all(), 2, true}; }
  PartialSum sum_of_tokens() const { return {"loss", Dimension::vocabulary, {tokens_}, 4}; }

  // The parameters are two layer norms, QKV with bias, projection and both MLP matrices. Biases after
  // row-parallel GEMMs are not divided.
  ModelLayer layer() const {
    return {"layer",
            {attention_forward(), mlp_forward(), layer_end_forward()},
            {mlp_backward(), attention_backward(), layer_begin_backward()},
            {{{4}, hidden_},
             {hidden_, qkv_},
             {qkv_},
             {heads_, hidden_},
             {hidden_},
             {hidden_, inner_},
             {inner_},
             {inner_, hidden_},
             {hidden_}}};
  }

  // Operators save the tensors that the backward needs where they are made or read, sbh (34 + 5 as/h) bytes a
  // layer (Korthikanti et al.). They are inputs of norms and GEMMs, queries, keys and values, the softmax's
  // result before and after dropout, the GeLU's input, and masks. Bytes of the memory-bound kernels, forward:
  //   layer norm                 a: read 2, write 2
  //   scale + mask + softmax     q: read 2 below the diagonal (1 on average), write 2
  //   attention dropout          q: read 2, write 2, mask 1
  //   context transpose          a/t: read 2, write 2
  //   bias + dropout + residual  a: read 2, residual 2, write 2, mask 1
  //   bias + GeLU                4a/t: read 2, write 2
  ModelPart attention_forward() const {
    return {"attention_forward",
            {saving({saved(2, a())}, memory("layer_norm", 4, a())),
             saving({saved_operand(a())}, gathering({all()}, weights("qkv_gemm", tokens_, qkv_, hidden_))),
             core(saving({saved(4, a_by_heads())},
                         gemm("attention_scores", query_tokens_, key_tokens_, head_size_, batch_heads_))),
             core(saving({saved_of_core(2, q())}, memory("softmax", 3, q()))),
             core(saving({saved_of_core(1, q())}, memory("attention_dropout", 5, q()))),
             core(saving({saved_of_core(2, q()), saved(2, a_by_heads())},
                         gemm("attention_context", query_tokens_, head_size_, key_tokens_, batch_heads_))),
             core(memory("context_transpose", 4, a_by_heads())),
             saving({saved_operand(a_by_heads())}, weights("projection_gemm", tokens_, hidden_, heads_))},
            sum("forward", Dimension::heads)};
  }
  ModelPart mlp_forward() const {
    return {
        "mlp_forward",
        {saving({saved(1, a())}, memory("bias_dropout_residual", 7, a())),
         saving({saved(2, a())}, memory("layer_norm", 4, a())),
         saving({saved_operand(a())}, gathering({all()}, weights("mlp_up_gemm", tokens_, inner_, hidden_))),
         saving({saved(2, a_inner())}, memory("bias_gelu", 4, a_inner())),
         saving({saved_operand(a_inner())}, weights("mlp_down_gemm", tokens_, hidden_, inner_))},
        sum("forward", Dimension::inner)};
  }
  ModelPart layer_end_forward() const {
    return {"layer_end_forward", {saving({saved(1, a())}, memory("bias_dropout_residual", 7, a()))}, {}};
  }

  // Bytes of the memory-bound kernels, backward:
  //   bias + dropout             a: read 2, mask 1, write 2; bias gradient reads 2
  //   bias + GeLU                4a/t: gradient 2, input 2, write 2; bias gradient reads 2
  //   layer norm                 a: gradient 2, input 2, write 2; gamma and beta gradients read 4
  //   residual gradient sum      a: read 4, write 2
  //   context transpose          a/t: read 2, write 2
  //   attention dropout          q: read 2, mask 1, write 2
  //   softmax                    q: gradient 2, output 2, write 2
  //   join of the q, k, v gradients and their bias gradient   3a/t: read 2, write 2, read 2
  ModelPart mlp_backward() const {
    return {
        "mlp_backward",
        {memory("bias_dropout_backward", 7, a()),
         gathering({all()}, weights("mlp_down_gemm_dgrad", tokens_, inner_, hidden_)),
         wgrad("mlp_down_gemm_wgrad", inner_, hidden_, tokens_), memory("bias_gelu_backward", 8, a_inner()),
         weights("mlp_up_gemm_dgrad", tokens_, hidden_, inner_),
         gathering({all(), true}, wgrad("mlp_up_gemm_wgrad", hidden_, inner_, tokens_)),
         accumulation({{hidden_, inner_}, {inner_, hidden_}})},
        sum("backward", Dimension::inner)};
  }
  ModelPart attention_backward() const {
    return {
        "attention_backward",
        {memory("layer_norm_backward", 10, a()), memory("residual_backward", 6, a()),
         memory("bias_dropout_backward", 7, a()),
         gathering({all()}, weights("projection_gemm_dgrad", tokens_, heads_, hidden_)),
         wgrad("projection_gemm_wgrad", heads_, hidden_, tokens_),
         core(memory("context_transpose_backward", 4, a_by_heads())),
         core(gemm("attention_context_dgrad", query_tokens_, key_tokens_, head_size_, batch_heads_)),
         core(gemm("attention_context_vgrad", key_tokens_, head_size_, query_tokens_, batch_heads_)),
         core(memory("attention_dropout_backward", 5, q())), core(memory("softmax_backward", 6, q())),
         core(gemm("attention_scores_qgrad", query_tokens_, head_size_, key_tokens_, batch_heads_)),
         core(gemm("attention_scores_kgrad", key_tokens_, head_size_, query_tokens_, batch_heads_)),
         memory("qkv_join_backward", 6, {tokens_, qkv_}), weights("qkv_gemm_dgrad", tokens_, hidden_, qkv_),
         gathering({all(), true}, wgrad("qkv_gemm_wgrad", hidden_, qkv_, tokens_)),
         accumulation({{hidden_, qkv_}, {heads_, hidden_}})},
        sum("backward", Dimension::heads)};
  }
  ModelPart layer_begin_backward() const {
    return {"layer_begin_backward",
            {memory("layer_norm_backward", 10, a()), memory("residual_backward", 6, a())},
            {}};
  }

  // Embedding: gathers rows (read 2, write 2) and zeroes those that other ranks hold (2). After the sum it
  // adds the position embedding (read 4, write 2) and dropout (read 2, write 2, mask 1). It transposes [b s
  // h] to [s b h] (read 2, write 2). Backward: transpose and dropout, zero a dense gradient (2), scatter the
  // rows into it (read 2, add 4) and sum it up. The position embedding is not divided.
  ModelLayer embedding() const {
    return {
        "embedding",
        {{"embedding_lookup",
          {memory("embedding_gather", 6, all())},
          sum("embedding", Dimension::vocabulary)},
         {"embedding_end",
          {memory("position_embedding", 6, a()), saving({saved(1, a())}, memory("embedding_dropout", 5, a())),
           memory("embedding_transpose", 4, a())},
          {}}},
        {{"embedding_backward",
          {memory("embedding_transpose", 4, a()), memory("embedding_dropout_backward", 5, a()),
           gathering({all()},
                     computing_weights(memory_bound("embedding_gradient", {{2, words()}, {6, all()}}))),
           accumulation({words()})},
          {}}},
        with_words({sequence_, hidden_})};
  }

  // Logits and a vocabulary-parallel cross entropy. After each of its first three parts one number per token
  // has to be combined. z in fp32: conversion (read 2, write 4), maximum (read 4), subtract it (read 4, write
  // 4). Exponentials (read 4, write 4) and their sum (read 4); normalise for the backward (read 4, write 4).
  // Backward: scale the softmax (read 4, write 4), conversion (read 4, write 2).
  ModelLayer head() const {
    return {
        "head",
        {{"logits_forward",
          {saving({saved(2, a())}, memory("final_layer_norm", 4, a())),
           saving({saved(2, a())}, gathering({all()}, gemm("logits_gemm", tokens_, vocabulary_, hidden_))),
           memory("logits_to_fp32", 6, z()), memory("logits_maximum", 4, z())},
          sum_of_tokens()},
         {"loss_predicted", {memory("logits_subtract_maximum", 8, z())}, sum_of_tokens()},
         {"loss_sum", {memory("logits_exponential", 8, z()), memory("logits_sum", 4, z())}, sum_of_tokens()},
         {"loss_end", {saving({saved(4, z())}, memory("softmax_normalise", 8, z()))}, {}}},
        {{"logits_backward",
          {memory("loss_backward", 8, z()), memory("logits_to_fp16", 6, z()),
           gemm("logits_gemm_dgrad", tokens_, hidden_, vocabulary_),
           gathering({all(), true},
                     computing_weights(gemm("logits_gemm_wgrad", hidden_, vocabulary_, tokens_))),
           accumulation({{vocabulary_, hidden_}})},
          sum("logits_backward", Dimension::vocabulary)},
         {"final_norm_backward", {memory("layer_norm_backward", 10, a())}, {}}},
        with_words({{2}, hidden_})};
  }

  std::int64_t layers_;
  bool tied_;
  std::int64_t gradient_bytes_;
  Extent hidden_, tokens_, sequence_, query_tokens_, key_tokens_, head_size_, heads_, qkv_, batch_heads_,
      inner_, vocabulary_;
};

}  // namespace

Model make_transformer(const TransformerModel& model, std::int64_t microbatch, std::int64_t gradient_bytes) {
  return Transformer(model, microbatch, gradient_bytes).make();
}

double transformer_flops(const TransformerModel& model, std::int64_t batch, bool recompute) {
  const double b = static_cast<double>(batch), s = static_cast<double>(model.sequence);
  const double l = static_cast<double>(model.layers), h = static_cast<double>(model.hidden);
  const double v = static_cast<double>(model.vocabulary);
  const double layers = (recompute ? 96.0 : 72.0) * b * s * l * h * h * (1.0 + s / (6.0 * h));
  return layers + 6.0 * b * s * h * v;
}

}  // namespace netsim
