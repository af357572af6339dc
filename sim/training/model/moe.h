// MoeLayer: a layer's MLP of routed and shared experts, operator by operator, as Megatron-Core runs it
// (megatron/core/transformer/moe). It has a router's GEMM with its scores and top-k in fp32, and copies of
// the tokens in the order of their experts. Grouped GEMMs compute the experts, whose results are summed by
// token. Between them are the exchanges that send tokens to their experts and back where experts are divided.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/training/model/operators.h"

namespace netsim {

class MoeLayer {
 public:
  // `inner` is the inner size of an expert. `gated` means SwiGLU, otherwise squared ReLU, as in LlamaModel.
  MoeLayer(const ExpertsModel& experts, std::int64_t inner, bool gated, std::int64_t hidden,
           std::int64_t tokens, std::int64_t gradient_bytes);

  // forward() returns the parts from the sum with the attention's residual to the experts' sum, with the
  // norm. It ends where the residual is added. backward() begins there and ends where the norm's gradient is
  // computed.
  std::vector<ModelPart> forward() const;
  std::vector<ModelPart> backward() const;
  // Parameters of router, routed and shared experts, without the norm.
  std::vector<Tensor> parameters() const;

 private:
  Tensor tokens_of_rank() const { return {{tokens_.size, Dimension::sequence}, hidden_}; }
  Tensor copies_of_rank() const { return {{copies_.size, Dimension::sequence}, hidden_}; }
  Tensor copies() const { return {copies_, hidden_}; }  // copies that the experts of a rank take
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

// Returns the FLOPs per token in all GEMMs of the layer, forward and backward.
double moe_flops_of_token(const ExpertsModel& experts, std::int64_t inner, bool gated, std::int64_t hidden);

}  // namespace netsim
