#include "sim/workload/model/transformer.h"

namespace netsim {

TransformerShard::TransformerShard(const TransformerModel& model, std::int64_t tensor,
                                   std::int64_t microbatch, std::int64_t gradient_bytes)
    : h_(model.hidden),
      s_(model.sequence),
      t_(tensor),
      head_size_(model.hidden / model.heads),
      vocabulary_(model.vocabulary / tensor),
      tokens_(model.sequence * microbatch),
      batch_heads_(microbatch * model.heads / tensor),
      gradient_bytes_(gradient_bytes) {}

Kernel TransformerShard::gemm(const char* name, std::int64_t m, std::int64_t n, std::int64_t k,
                              std::int64_t batch) const {
  Kernel kernel;
  kernel.kind = Kernel::Kind::gemm;
  kernel.name = name;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.batch = batch;
  kernel.element_bytes = 2;
  return kernel;
}

Kernel TransformerShard::memory(const char* name, Bytes bytes) const {
  Kernel kernel;
  kernel.kind = Kernel::Kind::memory;
  kernel.name = name;
  kernel.bytes = bytes;
  return kernel;
}

// Adding a microbatch's weight gradients (half precision) to the sum: read both, write the sum.
Kernel TransformerShard::accumulation(std::int64_t parameters) const {
  return memory("gradient_accumulation", (2 + 2 * gradient_bytes_) * parameters);
}

// Bytes of the memory-bound kernels, forward. a = one activation (tokens x hidden), q = scores (b heads/t s
// s):
//   layer norm                 a: read 2, write 2
//   scale + mask + softmax     q: read 2 below the diagonal (1 on average), write 2
//   attention dropout          q: read 2, write 2, mask 1
//   context transpose          a/t: read 2, write 2
//   bias + dropout + residual  a: read 2, residual 2, write 2, mask 1
//   bias + GeLU                4a/t: read 2, write 2
Work TransformerShard::attention_forward() const {
  const Bytes a = tokens_ * h_, q = batch_heads_ * s_ * s_;
  return {"attention_forward",
          {memory("layer_norm", 4 * a), gemm("qkv_gemm", tokens_, 3 * h_ / t_, h_),
           gemm("attention_scores", s_, s_, head_size_, batch_heads_), memory("softmax", 3 * q),
           memory("attention_dropout", 5 * q), gemm("attention_context", s_, head_size_, s_, batch_heads_),
           memory("context_transpose", 4 * a / t_), gemm("projection_gemm", tokens_, h_, h_ / t_)}};
}

Work TransformerShard::mlp_forward() const {
  const Bytes a = tokens_ * h_;
  return {"mlp_forward",
          {memory("bias_dropout_residual", 7 * a), memory("layer_norm", 4 * a),
           gemm("mlp_up_gemm", tokens_, 4 * h_ / t_, h_), memory("bias_gelu", 4 * (4 * a / t_)),
           gemm("mlp_down_gemm", tokens_, h_, 4 * h_ / t_)}};
}

Work TransformerShard::layer_end_forward() const {
  return {"layer_end_forward", {memory("bias_dropout_residual", 7 * tokens_ * h_)}};
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
Work TransformerShard::mlp_backward() const {
  const Bytes a = tokens_ * h_;
  const std::int64_t inner = 4 * h_ / t_;
  return {"mlp_backward",
          {memory("bias_dropout_backward", 7 * a), gemm("mlp_down_gemm_dgrad", tokens_, inner, h_),
           gemm("mlp_down_gemm_wgrad", inner, h_, tokens_), memory("bias_gelu_backward", 8 * (4 * a / t_)),
           gemm("mlp_up_gemm_dgrad", tokens_, h_, inner), gemm("mlp_up_gemm_wgrad", h_, inner, tokens_),
           accumulation(8 * h_ * h_ / t_)}};
}

Work TransformerShard::attention_backward() const {
  const Bytes a = tokens_ * h_, q = batch_heads_ * s_ * s_;
  return {
      "attention_backward",
      {memory("layer_norm_backward", 10 * a), memory("residual_backward", 6 * a),
       memory("bias_dropout_backward", 7 * a), gemm("projection_gemm_dgrad", tokens_, h_ / t_, h_),
       gemm("projection_gemm_wgrad", h_ / t_, h_, tokens_), memory("context_transpose_backward", 4 * a / t_),
       gemm("attention_context_dgrad", s_, s_, head_size_, batch_heads_),
       gemm("attention_context_vgrad", s_, head_size_, s_, batch_heads_),
       memory("attention_dropout_backward", 5 * q), memory("softmax_backward", 6 * q),
       gemm("attention_scores_qgrad", s_, head_size_, s_, batch_heads_),
       gemm("attention_scores_kgrad", s_, head_size_, s_, batch_heads_),
       memory("qkv_join_backward", 6 * (3 * a / t_)), gemm("qkv_gemm_dgrad", tokens_, h_, 3 * h_ / t_),
       gemm("qkv_gemm_wgrad", h_, 3 * h_ / t_, tokens_), accumulation(4 * h_ * h_ / t_)}};
}

Work TransformerShard::layer_begin_backward() const {
  const Bytes a = tokens_ * h_;
  return {"layer_begin_backward",
          {memory("layer_norm_backward", 10 * a), memory("residual_backward", 6 * a)}};
}

// Embedding: gather rows (read 2, write 2) and zero what other ranks hold (2); after the all-reduce add the
// position embedding (read 4, write 2) and dropout (read 2, write 2, mask 1), and turn [b s h] into [s b h]
// (read 2, write 2).
Work TransformerShard::embedding_lookup() const {
  return {"embedding_lookup", {memory("embedding_gather", 6 * tokens_ * h_)}};
}

Work TransformerShard::embedding_end() const {
  const Bytes a = tokens_ * h_;
  return {"embedding_end",
          {memory("position_embedding", 6 * a), memory("embedding_dropout", 5 * a),
           memory("embedding_transpose", 4 * a)}};
}

// Backward: transpose and dropout, zero a dense gradient (2) and scatter the rows into it (read 2, add 4),
// sum it up.
Work TransformerShard::embedding_backward() const {
  const Bytes a = tokens_ * h_;
  const std::int64_t words = word_embedding_parameters();
  return {"embedding_backward",
          {memory("embedding_transpose", 4 * a), memory("embedding_dropout_backward", 5 * a),
           memory("embedding_gradient", 2 * words + 6 * a), accumulation(words)}};
}

// Loss, z = tokens x vocabulary/t in fp32: conversion (read 2, write 4), maximum (read 4); subtract it (read
// 4, write 4); exponentials (read 4, write 4) and their sum (read 4); normalise for the backward (read 4,
// write 4).
Work TransformerShard::logits_forward() const {
  const Bytes z = tokens_ * vocabulary_;
  return {"logits_forward",
          {memory("final_layer_norm", 4 * tokens_ * h_), gemm("logits_gemm", tokens_, vocabulary_, h_),
           memory("logits_to_fp32", 6 * z), memory("logits_maximum", 4 * z)}};
}

Work TransformerShard::loss_predicted() const {
  return {"loss_predicted", {memory("logits_subtract_maximum", 8 * tokens_ * vocabulary_)}};
}

Work TransformerShard::loss_sum() const {
  const Bytes z = tokens_ * vocabulary_;
  return {"loss_sum", {memory("logits_exponential", 8 * z), memory("logits_sum", 4 * z)}};
}

Work TransformerShard::loss_end() const {
  return {"loss_end", {memory("softmax_normalise", 8 * tokens_ * vocabulary_)}};
}

// Backward of the loss: scale the softmax (read 4, write 4), conversion (read 4, write 2).
Work TransformerShard::logits_backward() const {
  const Bytes z = tokens_ * vocabulary_;
  return {"logits_backward",
          {memory("loss_backward", 8 * z), memory("logits_to_fp16", 6 * z),
           gemm("logits_gemm_dgrad", tokens_, h_, vocabulary_),
           gemm("logits_gemm_wgrad", h_, vocabulary_, tokens_), accumulation(word_embedding_parameters())}};
}

Work TransformerShard::final_norm_backward() const {
  return {"final_norm_backward", {memory("layer_norm_backward", 10 * tokens_ * h_)}};
}

// Mixed-precision Adam as Megatron-LM runs it with apex. Bytes per parameter: gradient to fp32 (read 2, write
// 4; not for fp32 gradients), unscale and check (8), norm (4), clip (8), Adam (read gradient, parameter, m,
// v: 16, write parameter, m, v: 12), fp32 parameter to half precision (read 4, write 2).
Work TransformerShard::optimizer(std::int64_t parameters) const {
  Work work{"optimizer", {}};
  if (gradient_bytes_ == 2) work.kernels.push_back(memory("gradient_to_fp32", 6 * parameters));
  work.kernels.push_back(memory("gradient_unscale", 8 * parameters));
  work.kernels.push_back(memory("gradient_norm", 4 * parameters));
  work.kernels.push_back(memory("gradient_clip", 8 * parameters));
  work.kernels.push_back(memory("adam", 28 * parameters));
  work.kernels.push_back(memory("parameter_to_fp16", 6 * parameters));
  return work;
}

// Two layer norms, QKV with bias, projection, both MLP matrices; biases after row-parallel GEMMs are not
// split.
std::int64_t TransformerShard::layer_parameters() const {
  const std::int64_t norms = 4 * h_;
  const std::int64_t attention = 4 * h_ * h_ / t_ + 3 * h_ / t_ + h_;
  const std::int64_t mlp = 8 * h_ * h_ / t_ + 4 * h_ / t_ + h_;
  return norms + attention + mlp;
}

std::int64_t TransformerShard::word_embedding_parameters() const { return vocabulary_ * h_; }
std::int64_t TransformerShard::position_embedding_parameters() const { return s_ * h_; }
std::int64_t TransformerShard::final_norm_parameters() const { return 2 * h_; }

double transformer_flops(const TransformerModel& model, std::int64_t batch, bool recompute) {
  const double b = static_cast<double>(batch), s = static_cast<double>(model.sequence);
  const double l = static_cast<double>(model.layers), h = static_cast<double>(model.hidden);
  const double v = static_cast<double>(model.vocabulary);
  const double layers = (recompute ? 96.0 : 72.0) * b * s * l * h * h * (1.0 + s / (6.0 * h));
  return layers + 6.0 * b * s * h * v;
}

}  // namespace netsim
