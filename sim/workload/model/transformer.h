// Transformer: what one rank of a tensor-parallel GPT computes, kernel by kernel, as Megatron-LM runs it
// (Shoeybi et al., arXiv 1909.08053; Narayanan et al., SC'21): activations in half precision, fused
// scale+mask+softmax (causal), bias+GeLU and bias+dropout+residual kernels, tied embedding and logits
// weights.
//
// Every Work is what lies between two communications. GEMMs are (m x k)(k x n). Memory-bound kernels count
// the bytes they read and write, each tensor once per kernel; the tables of bytes per element are in
// transformer.cpp.
#pragma once

#include <cstdint>

#include "sim/core/units.h"
#include "sim/workload/task.h"

namespace netsim {

struct TransformerModel {
  std::int64_t layers = 96;
  std::int64_t hidden = 12288;
  std::int64_t heads = 96;
  std::int64_t sequence = 2048;
  std::int64_t vocabulary = 51200;
};

class TransformerShard {
 public:
  // `tensor` divides hidden, heads and vocabulary; `gradient_bytes` per parameter: 2 or 4.
  TransformerShard(const TransformerModel& model, std::int64_t tensor, std::int64_t microbatch,
                   std::int64_t gradient_bytes);

  // One layer: attention_forward, all-reduce, mlp_forward, all-reduce, layer_end_forward; backward the other
  // way.
  Work attention_forward() const;
  Work mlp_forward() const;
  Work layer_end_forward() const;
  Work mlp_backward() const;
  Work attention_backward() const;
  Work layer_begin_backward() const;

  // First stage: lookup, all-reduce, position embedding and dropout.
  Work embedding_lookup() const;
  Work embedding_end() const;
  Work embedding_backward() const;

  // Last stage: logits, then the vocabulary-parallel cross entropy with an all-reduce of one number per token
  // after each of its first three parts; backward up to the all-reduce of the logits' input gradient, and
  // after it.
  Work logits_forward() const;
  Work loss_predicted() const;
  Work loss_sum() const;
  Work loss_end() const;
  Work logits_backward() const;
  Work final_norm_backward() const;

  // Adam over this many parameters: bytes per parameter in transformer.cpp.
  Work optimizer(std::int64_t parameters) const;

  // Parameters of this rank.
  std::int64_t layer_parameters() const;
  std::int64_t word_embedding_parameters() const;      // vocabulary / t x hidden
  std::int64_t position_embedding_parameters() const;  // not split
  std::int64_t final_norm_parameters() const;

  Bytes activation_bytes() const {
    return 2 * tokens_ * h_;
  }                                                  // b s h in half precision: what is all-reduced and sent
  Bytes token_bytes() const { return 4 * tokens_; }  // one fp32 number per token

 private:
  Kernel gemm(const char* name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) const;
  Kernel memory(const char* name, Bytes bytes) const;
  Kernel accumulation(std::int64_t parameters) const;

  std::int64_t h_, s_, t_, head_size_, vocabulary_, tokens_, batch_heads_, gradient_bytes_;
};

// The paper's FLOPs of one iteration over `batch` sequences: 96 B s l h^2 (1 + s/6h + V/16lh) with full
// recomputation (Narayanan et al., equation 3), 72 B s l h^2 (1 + s/6h + V/12lh) without.
double transformer_flops(const TransformerModel& model, std::int64_t batch, bool recompute);

}  // namespace netsim
