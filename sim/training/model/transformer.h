// A GPT from its hyper-parameters, operator by operator, as Megatron-LM runs it (Shoeybi et al., arXiv
// 1909.08053; Narayanan et al., SC'21): activations in half precision, fused scale+mask+softmax (causal),
// bias+GeLU and bias+dropout+residual kernels.
//
// GEMMs are (m x k)(k x n). Memory-bound kernels count the bytes they read and write, each tensor once per
// kernel; the tables of bytes per element are in transformer.cpp.
#pragma once

#include <cstdint>

#include "sim/training/model/operators.h"

namespace netsim {

struct TransformerModel {
  std::int64_t layers = 96;
  std::int64_t hidden = 12288;
  std::int64_t heads = 96;
  std::int64_t sequence = 2048;
  std::int64_t vocabulary = 51200;
  bool tied = true;  // embedding and logits share their weights
};

// For microbatches of so many sequences; `gradient_bytes` of a parameter: 2 or 4. Dimensions: `heads` of the
// attention, `inner` of the MLP, `vocabulary` of embedding and logits.
Model make_transformer(const TransformerModel& model, std::int64_t microbatch, std::int64_t gradient_bytes);

// The paper's FLOPs of one iteration over `batch` sequences: 96 B s l h^2 (1 + s/6h + V/16lh) with full
// recomputation (Narayanan et al., equation 3), 72 B s l h^2 (1 + s/6h + V/12lh) without.
double transformer_flops(const TransformerModel& model, std::int64_t batch, bool recompute);

}  // namespace netsim
