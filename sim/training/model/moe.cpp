#include "sim/training/model/moe.h"

#include <utility>

namespace netsim {

MoeLayer::MoeLayer(const ExpertsModel& experts, std::int64_t inner, bool gated, std::int64_t hidden,
                   std::int64_t tokens, std::int64_t gradient_bytes)
    : experts_(experts),
      gated_(gated),
      gradient_bytes_(gradient_bytes),
      hidden_{hidden},
      tokens_{tokens},
      copies_{experts.count > 0 ? experts.copies_of(tokens) : 0, Dimension::routed},
      each_{experts.count, Dimension::experts},
      inner_{inner, Dimension::expert_inner},
      up_{(gated ? 2 : 1) * inner, Dimension::expert_inner},
      shared_inner_{experts.shared * inner, Dimension::inner},
      shared_up_{(gated ? 2 : 1) * experts.shared * inner, Dimension::inner} {}

std::vector<ModelPart> MoeLayer::forward() const {
  std::vector<ModelPart> parts{router_forward(), experts_forward()};
  parts.push_back(
      {"moe_combine_forward",
       {saving({saved(2, copies_of_rank())},
               of_copies(memory_bound("unpermute", {{2, copies_of_rank()}, {2, tokens_of_rank()}})))},
       {}});
  if (experts_.shared > 0) {
    parts.push_back(shared_forward());
    parts.push_back({"shared_experts_end_forward", {memory_bound("experts_sum", 6, tokens_of_rank())}, {}});
  }
  return parts;
}

// Saved for the backward: inputs of the norm, of the router and of GEMMs, scores in fp32, the activation's
// input and the experts' results. The products of these results with the output's gradient are the gradients
// of the scores.
//
// Bytes of the memory-bound kernels, forward: sum with the residual (read 4, write 2), norm (read 2, write
// 2). Scores (read 2, write 4 in fp32; top-k reads 4), copies in the order of the experts (read 2 a token,
// write 2 a copy). The activation reads the GEMM's result (2 or 4) and writes 2. The sum by token reads 2 a
// copy and writes 2 a token.
ModelPart MoeLayer::router_forward() const {
  const Extent tokens{tokens_.size, Dimension::sequence};
  return {"moe_router_forward",
          {memory_bound("residual", 6, tokens_of_rank()),
           saving({saved(2, tokens_of_rank())},
                  part_of(Module::norm, memory_bound("rms_norm", 4, tokens_of_rank()))),
           saving({result_of(Module::norm, saved(2, tokens_of_rank()))},
                  gemm("router_gemm", tokens, {experts_.count}, hidden_)),
           saving({saved(4, scores())}, memory_bound("router_top_k", 10, scores())),
           of_copies(memory_bound("permute", {{2, tokens_of_rank()}, {2, copies_of_rank()}}))},
          {},
          Exchange{"dispatch_forward", true, !experts_.padded}};
}

ModelPart MoeLayer::experts_forward() const {
  return {"experts_forward",
          {saving({saved_operand(copies())},
                  gathering(all_of(copies()), linear_gemm("expert_up_gemm", copies_, up_, hidden_, each_))),
           saving({saved(2, {copies_, up_})}, activation(true, {copies_, inner_})),
           saving({result_of(Module::activation, saved_operand({copies_, inner_}))},
                  linear_gemm("expert_down_gemm", copies_, hidden_, inner_, each_))},
          sum("forward", Dimension::expert_inner, copies()),
          Exchange{"combine_forward", false}};
}

ModelPart MoeLayer::shared_forward() const {
  const Tensor all{tokens_, hidden_};
  return {"shared_experts_forward",
          {saving({result_of(Module::norm, saved_elsewhere(tokens_of_rank()))},
                  gathering({all}, linear_gemm("shared_up_gemm", tokens_, shared_up_, hidden_))),
           saving({saved(2, {tokens_, shared_up_})}, activation(true, {tokens_, shared_inner_})),
           saving({result_of(Module::activation, saved_operand({tokens_, shared_inner_}))},
                  linear_gemm("shared_down_gemm", tokens_, hidden_, shared_inner_))},
          sum("forward", Dimension::inner, all)};
}

// Bytes of the memory-bound kernels, backward: sum by token (gradient 2 a token, the expert's result 2 and
// the gradient 2 a copy). Activation (gradient 2, input 2 or 4, write 2 or 4), copies (read 2 a copy, write 2
// a token), scores (as forward).
std::vector<ModelPart> MoeLayer::backward() const {
  std::vector<ModelPart> parts;
  if (experts_.shared > 0) parts.push_back(shared_backward());
  parts.push_back({"moe_combine_backward",
                   {memory_bound("unpermute_backward", {{2, tokens_of_rank()}, {4, copies_of_rank()}})},
                   {},
                   Exchange{"combine_backward", true}});
  parts.push_back(experts_backward());
  parts.push_back(router_backward());
  return parts;
}

ModelPart MoeLayer::experts_backward() const {
  return {
      "experts_backward",
      {gathering(all_of(copies()), linear_gemm("expert_down_gemm_dgrad", copies_, inner_, hidden_, each_)),
       weight_gradient_gemm("expert_down_gemm_wgrad", inner_, hidden_, copies_, each_),
       activation(false, {copies_, inner_}),
       linear_gemm("expert_up_gemm_dgrad", copies_, hidden_, up_, each_),
       weight_gradient_gemm("expert_up_gemm_wgrad", hidden_, up_, copies_, each_),
       accumulation({{each_, hidden_, up_}, {each_, inner_, hidden_}}, gradient_bytes_)},
      sum("backward", Dimension::expert_inner, copies()),
      Exchange{"dispatch_backward", false}};
}

ModelPart MoeLayer::shared_backward() const {
  const Tensor all{tokens_, hidden_};
  return {"shared_experts_backward",
          {gathering({all}, linear_gemm("shared_down_gemm_dgrad", tokens_, shared_inner_, hidden_)),
           weight_gradient_gemm("shared_down_gemm_wgrad", shared_inner_, hidden_, tokens_),
           activation(false, {tokens_, shared_inner_}),
           linear_gemm("shared_up_gemm_dgrad", tokens_, hidden_, shared_up_),
           gathering({all, true}, weight_gradient_gemm("shared_up_gemm_wgrad", hidden_, shared_up_, tokens_)),
           accumulation({{hidden_, shared_up_}, {shared_inner_, hidden_}}, gradient_bytes_)},
          sum("backward", Dimension::inner, all)};
}

ModelPart MoeLayer::router_backward() const {
  const Extent tokens{tokens_.size, Dimension::sequence}, scores_of_token{experts_.count};
  ModelPart part{"moe_router_backward",
                 {of_copies(memory_bound("permute_backward", {{2, copies_of_rank()}, {2, tokens_of_rank()}})),
                  memory_bound("router_top_k_backward", 10, scores()),
                  gemm("router_gemm_dgrad", tokens, hidden_, scores_of_token),
                  computing_weights(gemm("router_gemm_wgrad", hidden_, scores_of_token, tokens)),
                  accumulation({{hidden_, scores_of_token}}, gradient_bytes_),
                  memory_bound("router_gradient_sum", 6, tokens_of_rank())},
                 {}};
  if (experts_.shared > 0)
    part.operators.push_back(memory_bound("experts_sum_backward", 6, tokens_of_rank()));
  return part;
}

std::vector<Tensor> MoeLayer::parameters() const {
  std::vector<Tensor> all{{hidden_, {experts_.count}}, {each_, hidden_, up_}, {each_, inner_, hidden_}};
  if (experts_.shared > 0) {
    all.push_back({hidden_, shared_up_});
    all.push_back({shared_inner_, hidden_});
  }
  return all;
}

Operator MoeLayer::activation(bool forward, const Tensor& inner) const {
  if (forward)
    return part_of(Module::activation,
                   memory_bound(gated_ ? "swiglu" : "squared_relu", gated_ ? 6 : 4, inner));
  return memory_bound(gated_ ? "swiglu_backward" : "squared_relu_backward", gated_ ? 10 : 6, inner);
}

PartialSum MoeLayer::sum(const char* name, Dimension over, Tensor tensor) const {
  return {name, over, std::move(tensor), 2, true};
}

Gather MoeLayer::all_of(Tensor tensor) const { return {std::move(tensor), false, Dimension::expert_inner}; }

double moe_flops_of_token(const ExpertsModel& e, std::int64_t inner, bool gated, std::int64_t hidden) {
  const auto h = static_cast<double>(hidden);
  const double expert = (gated ? 18.0 : 12.0) * h * static_cast<double>(inner);
  if (e.count == 0) return 0;
  return static_cast<double>(e.top_k + e.shared) * expert + 6.0 * h * static_cast<double>(e.count);
}

}  // namespace netsim
