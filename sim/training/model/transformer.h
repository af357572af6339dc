// A GPT from its hyper-parameters, operator by operator, as Megatron-LM runs it (Shoeybi et al., arXiv
// 1909.08053; Narayanan et al., SC'21). Activations are in half precision. The kernels fused
// scale+mask+softmax (causal), bias+GeLU and bias+dropout+residual are used.
//
// GEMMs are (m x k)(k x n). Memory-bound kernels count the bytes they read and write, each tensor once per
// kernel. The tables of bytes per element are in transformer.cpp.
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

// Returns the model for microbatches of so many sequences. A parameter's gradient has `gradient_bytes`, 2 or
// 4. The dimensions are `heads` of the attention, `inner` of the MLP, and `vocabulary` of embedding and
// logits.
Model make_transformer(const TransformerModel& model, std::int64_t microbatch, std::int64_t gradient_bytes);

// Returns the paper's FLOPs of one iteration over `batch` sequences. With full recomputation they are `96 B s
// l h^2 (1 + s/6h + V/16lh)` (Narayanan et al., equation 3), without it `72 B s l h^2 (1 + s/6h + V/12lh)`.
double transformer_flops(const TransformerModel& model, std::int64_t batch, bool recompute);

}  // namespace netsim
