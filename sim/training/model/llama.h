// A decoder of the LLaMA kind from its hyper-parameters, operator by operator (Touvron et al., arXiv
// 2302.13971; Dubey et al., arXiv 2407.21783). It has RMS norms, rotary positions and grouped-query attention
// by a fused causal kernel, without biases and dropout. The MLP is gated (SwiGLU) or not (squared ReLU, as
// Nemotron-4's), and embeddings are tied or not. It may have routed experts (moe.h) and latent attention
// (latent_attention.h). It runs as in Megatron-Core, with activations in half precision.
#pragma once

#include <cstdint>

#include "sim/training/model/latent_attention.h"
#include "sim/training/model/operators.h"
#include "sim/workload/routing/experts.h"

namespace netsim {

struct LlamaModel {
  std::int64_t layers = 32;
  std::int64_t hidden = 4096;
  std::int64_t heads = 32;
  std::int64_t groups = 8;     // groups of heads that share keys and values; divides heads
  std::int64_t inner = 14336;  // inner size of the MLP
  std::int64_t sequence = 8192;
  std::int64_t vocabulary = 128256;
  bool gated = true;
  bool tied = false;
  ExpertsModel experts{};
  LatentAttentionModel latent{};
  // Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2) of one more token. It is a layer
  // behind the body, whose inputs are the body's output and the embedding of the next token. It has logits
  // and a loss of its own.
  bool multi_token = false;

  std::int64_t expert_inner() const { return experts.inner > 0 ? experts.inner : inner; }
  std::int64_t layers_with_experts() const;
};

// The dimensions are those of make_transformer(). Keys and values also run along the heads: groups are
// divided with them.
Model make_llama(const LlamaModel& model, std::int64_t microbatch, std::int64_t gradient_bytes);

// Returns the FLOPs of one iteration over `batch` sequences, forward and backward without recomputation. As
// in NVIDIA's benchmarking recipes, attention is not halved for its causal mask. Per sequence they are `s (12
// L h^2 (1 + g/a + s/h) + 18 L f h + 6 V h)`, with 12 instead of 18 where the MLP is not gated.
//
// For experts, the routed ones of a token, the shared ones and the router count, as if nothing was dropped or
// padded. Multi-token prediction adds its layer, its logits and 12 h^2 for the projection that joins its two
// inputs.
double llama_flops(const LlamaModel& model, std::int64_t batch);

}  // namespace netsim
