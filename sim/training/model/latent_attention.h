// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): queries, keys and values are
// projected up from a few numbers a token; a part of each query and key, the latter the same for all heads,
// has a position. As Megatron-Core runs it: the projections down are on every tensor-parallel rank, for its
// part of the tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/training/model/operators.h"

namespace netsim {

struct LatentAttentionModel {
  std::int64_t key_value = 0;  // what is left of a token for keys and values; 0: attention is of another kind
  std::int64_t query = 0;      // and for queries; 0: these are not compressed
  // Of a head: a query and key without and with position, and a value.
  std::int64_t plain = 128, rotary = 64, value = 128;
};

class LatentAttention {
 public:
  LatentAttention(const LatentAttentionModel& model, std::int64_t hidden, std::int64_t heads,
                  std::int64_t sequence, std::int64_t microbatch, std::int64_t gradient_bytes);

  // From the norm to the projection, of which the sum over `heads` is left.
  std::vector<Operator> forward() const;
  // From the projection to the gradient of the norm's result; `before` is computed first.
  std::vector<ModelPart> backward(std::vector<Operator> before) const;
  std::vector<Tensor> parameters() const;  // without the layer's norm

 private:
  Operator attention(bool forward) const;
  std::vector<Tensor> matrices() const;

  LatentAttentionModel m_;
  std::int64_t gradient_bytes_, sequence_;
  Extent hidden_, tokens_, part_, batch_heads_;
  Extent down_, queries_, keys_values_, values_;
};

const Parameters<LatentAttentionModel>& latent_attention_parameters();
// Of a token: the GEMMs, and the two products of attention over `sequence` keys, forward and backward.
double latent_attention_flops_of_token(const LatentAttentionModel& model, std::int64_t hidden,
                                       std::int64_t heads, std::int64_t sequence);

}  // namespace netsim
