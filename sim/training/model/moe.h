// A layer's MLP of routed and shared experts, operator by operator, as Megatron-Core runs it
// (megatron/core/transformer/moe): a router's GEMM with its scores and top-k in fp32, the copies of the
// tokens put in the order of their experts, grouped GEMMs, and the experts' results summed by token. Between
// them are the exchanges that send tokens to their experts and back where experts are divided.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/training/model/operators.h"

namespace netsim {

class MoeLayer {
 public:
  // `inner` of an expert; `gated`: SwiGLU, else squared ReLU, as LlamaModel's.
  MoeLayer(const ExpertsModel& experts, std::int64_t inner, bool gated, std::int64_t hidden,
           std::int64_t tokens, std::int64_t gradient_bytes);

  // From the sum with the attention's residual and the norm to the experts' sum. `forward` ends where the
  // residual is added, `backward` begins there and ends where the norm's gradient is computed.
  std::vector<ModelPart> forward() const;
  std::vector<ModelPart> backward() const;
  std::vector<Tensor> parameters() const;  // router, routed and shared experts, without the norm

 private:
  Tensor tokens_of_rank() const { return {{tokens_.size, Dimension::sequence}, hidden_}; }
  Tensor copies_of_rank() const { return {{copies_.size, Dimension::sequence}, hidden_}; }
  Tensor copies() const { return {copies_, hidden_}; }  // that the experts of a rank take
  Tensor scores() const { return {{tokens_.size, Dimension::sequence}, {experts_.count}}; }
  Operator activation(bool forward, const Tensor& inner) const;
  PartialSum sum(const char* name, Dimension over, Tensor tensor) const;
  Gather all_of(Tensor tensor) const;
  ModelPart router_forward() const;
  ModelPart experts_forward() const;
  ModelPart shared_forward() const;
  ModelPart experts_backward() const;
  ModelPart shared_backward() const;
  ModelPart router_backward() const;

  ExpertsModel experts_;
  bool gated_;
  std::int64_t gradient_bytes_;
  Extent hidden_, tokens_, copies_, each_, inner_, up_, shared_inner_, shared_up_;
};

// Of a token, in all GEMMs of the layer, forward and backward.
double moe_flops_of_token(const ExpertsModel& experts, std::int64_t inner, bool gated, std::int64_t hidden);

}  // namespace netsim
