// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). Queries, keys and values are
// projected up from a few numbers a token. A part of each query and key has a position; the key's is the same
// for all heads. As in Megatron-Core, every tensor-parallel rank has the whole down-projections and computes
// them for its part of the tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/training/model/operators.h"

namespace netsim {

struct LatentAttentionModel {
  // Size of a token's compressed keys and values; 0: attention is of another kind.
  std::int64_t key_value = 0;
  std::int64_t query = 0;  // size of its compressed queries; 0: these are not compressed
  // Sizes per head: a query and key without position and with it, and a value.
  std::int64_t plain = 128, rotary = 64, value = 128;
};

class LatentAttention {
 public:
  LatentAttention(const LatentAttentionModel& model, std::int64_t hidden, std::int64_t heads,
                  std::int64_t sequence, std::int64_t microbatch, std::int64_t gradient_bytes);

  // Returns the operators from the norm to the projection, whose result is a partial sum over `heads`.
  std::vector<Operator> forward() const;
  // Returns the parts from the projection to the gradient of the norm's result. `before` is computed first.
  std::vector<ModelPart> backward(std::vector<Operator> before) const;
  std::vector<Tensor> parameters() const;  // all parameters except the layer's norm

 private:
  Operator attention(bool forward) const;
  std::vector<Tensor> matrices() const;

  LatentAttentionModel m_;
  std::int64_t gradient_bytes_, sequence_;
  Extent hidden_, tokens_, part_, batch_heads_;
  Extent down_, queries_, keys_values_, values_;
};

const Parameters<LatentAttentionModel>& latent_attention_parameters();
// Returns the FLOPs per token: the GEMMs, and the two products of attention over `sequence` keys, forward and
// backward.
double latent_attention_flops_of_token(const LatentAttentionModel& model, std::int64_t hidden,
                                       std::int64_t heads, std::int64_t sequence);

}  // namespace netsim
