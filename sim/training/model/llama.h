// A decoder of the LLaMA kind from its hyper-parameters, operator by operator (Touvron et al., arXiv
// 2302.13971; Dubey et al., arXiv 2407.21783): RMS norms, rotary positions, grouped-query attention by a
// fused causal kernel, no biases and no dropout, an MLP that is gated (SwiGLU) or not (squared ReLU, as
// Nemotron-4's), and embeddings that are tied or not; or with routed experts (moe.h) and latent attention
// (latent_attention.h). As Megatron-Core runs it, activations in half precision.
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
  std::int64_t groups = 8;     // of heads that share keys and values; divides heads
  std::int64_t inner = 14336;  // of the MLP
  std::int64_t sequence = 8192;
  std::int64_t vocabulary = 128256;
  bool gated = true;
  bool tied = false;
  ExpertsModel experts{};
  LatentAttentionModel latent{};
  // Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2) of one token more: a layer behind the
  // body, of what the body gives and the embedding of the next token, with logits and a loss of its own.
  bool multi_token = false;

  std::int64_t expert_inner() const { return experts.inner > 0 ? experts.inner : inner; }
  std::int64_t layers_with_experts() const;
};

// Dimensions as make_transformer()'s; keys and values run along the heads, too: groups are divided with them.
Model make_llama(const LlamaModel& model, std::int64_t microbatch, std::int64_t gradient_bytes);

// FLOPs of one iteration over `batch` sequences, forward and backward and nothing computed again, attention
// not halved for its causal mask, as NVIDIA's benchmarking recipes count them: per sequence s (12 L h^2 (1 +
// g/a + s/h) + 18 L f h + 6 V h), with 12 instead of 18 where the MLP is not gated. Of experts those that a
// token goes to, shared ones and the router, as if nothing was dropped or filled up. Multi-token prediction
// adds its layer, its logits and 12 h^2 of the projection that joins its two inputs.
double llama_flops(const LlamaModel& model, std::int64_t batch);

}  // namespace netsim
