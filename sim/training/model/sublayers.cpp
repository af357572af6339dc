#include "sim/training/model/sublayers.h"

#include <utility>

namespace netsim {

Sublayers::Sublayers(SublayerShape shape)
    : s_(std::move(shape)),
      hidden_{s_.hidden},
      tokens_{s_.queries * s_.microbatch, Dimension::tokens},
      read_{s_.keys * s_.microbatch, Dimension::tokens},
      query_tokens_{s_.queries, Dimension::tokens},
      key_tokens_{s_.keys, Dimension::keys},
      head_size_{s_.head_size},
      heads_{s_.heads * s_.head_size, Dimension::heads},
      batch_heads_{s_.microbatch * s_.heads, Dimension::heads},
      inner_{s_.inner, Dimension::inner} {}

PartialSum Sublayers::sum(const char* name, Dimension over, Tensor tensor) const {
  return {name, over, std::move(tensor), 2, true};
}

Operator Sublayers::in_core_of(Operator op) const {
  return in_core({queries(), keys(), keys(), queries()}, std::move(op));
}

void Sublayers::add_bias(std::vector<Tensor>& parameters, Extent extent) const {
  if (s_.biases) parameters.push_back({extent});
}

// Bytes per element of the memory-bound kernels, forward:
//   norm                     part: read 2, write 2
//   scale + softmax          scores: read 2, what is added to them 2, write 2
//   attention dropout        scores: read 2, write 2, mask 1
//   context transpose        queries: read 2, write 2
//   activation (with bias)   inner: read 2, write 2
//   sum with the residual    part: read 4, write 2; with dropout a mask of 1
// backward:
//   norm                     part: gradient 2, input 2, write 2; gradients of its parameters read 4
//   residual gradient sum    part: read 4, write 2; dropout backward: read 2, mask 1, write 2, and a bias'
//                            gradient reads 2
//   dropout, softmax         scores: read 2, mask 1, write 2; gradient 2, output 2, write 2
//   activation               inner: gradient 2, input 2, write 2; a bias' gradient reads 2
//   join of q, k, v          their gradients: read 2, write 2; a bias' gradient reads 2
Operator Sublayers::norm_forward() const {
  return memory_bound(s_.biases ? "layer_norm" : "rms_norm", 4, part());
}
Operator Sublayers::norm_backward() const {
  return memory_bound(s_.biases ? "layer_norm_backward" : "rms_norm_backward", 10, part());
}
std::vector<Tensor> Sublayers::norm_parameters() const { return {{{s_.biases ? 2 : 1}, hidden_}}; }
Operator Sublayers::residual_forward() const {
  return memory_bound(s_.dropout ? "bias_dropout_residual" : "residual", s_.dropout ? 7 : 6, part());
}
std::vector<Operator> Sublayers::residual_backward() const {
  if (!s_.dropout && !s_.biases) return {};
  return {memory_bound("bias_dropout_backward", (s_.dropout ? 5 : 0) + (s_.biases ? 2 : 0), part())};
}

// Adds the core of the attention. The fused kernel reads queries, keys and values and writes the output.
// Backward reads these and the output's gradient, writes three gradients, and computes the scores again.
void Sublayers::add_core(std::vector<Operator>& operators) const {
  if (s_.fused) {
    Operator op = gemm("flash_attention", query_tokens_, key_tokens_, {2 * s_.head_size}, batch_heads_);
    op.kind = Kernel::Kind::attention;
    op.traffic = {{4, queries()}, {4, keys()}};
    operators.push_back(in_core_of(std::move(op)));
    return;
  }
  operators.push_back(
      in_core_of(gemm("attention_scores", query_tokens_, key_tokens_, head_size_, batch_heads_)));
  operators.push_back(in_core_of(memory_bound("softmax", s_.score_bias ? 6 : 4, scores())));
  if (s_.dropout) operators.push_back(in_core_of(memory_bound("attention_dropout", 5, scores())));
  operators.push_back(
      in_core_of(gemm("attention_context", query_tokens_, head_size_, key_tokens_, batch_heads_)));
  operators.push_back(in_core_of(memory_bound("context_transpose", 4, queries())));
}
void Sublayers::add_core_backward(std::vector<Operator>& operators) const {
  if (s_.fused) {
    Operator op =
        gemm("flash_attention_backward", query_tokens_, key_tokens_, {5 * s_.head_size}, batch_heads_);
    op.kind = Kernel::Kind::attention;
    op.traffic = {{8, queries()}, {8, keys()}};
    operators.push_back(in_core_of(std::move(op)));
    return;
  }
  const auto add = [&](Operator op) { operators.push_back(in_core_of(std::move(op))); };
  add(memory_bound("context_transpose_backward", 4, queries()));
  add(gemm("attention_context_dgrad", query_tokens_, key_tokens_, head_size_, batch_heads_));
  add(gemm("attention_context_vgrad", key_tokens_, head_size_, query_tokens_, batch_heads_));
  if (s_.dropout) add(memory_bound("attention_dropout_backward", 5, scores()));
  add(memory_bound("softmax_backward", s_.score_bias ? 8 : 6, scores()));
  add(gemm("attention_scores_qgrad", query_tokens_, head_size_, key_tokens_, batch_heads_));
  add(gemm("attention_scores_kgrad", key_tokens_, head_size_, query_tokens_, batch_heads_));
}

Sublayer Sublayers::attention() const {
  const Extent qkv{3 * heads_.size, Dimension::heads};
  Sublayer made{"attention", {norm_forward()}, Dimension::heads, {}, norm_parameters()};
  made.forward.push_back(gathering({all()}, linear_gemm("qkv_gemm", tokens_, qkv, hidden_)));
  add_core(made.forward);
  made.forward.push_back(linear_gemm("projection_gemm", tokens_, hidden_, heads_));

  std::vector<Operator> backward{
      gathering({all()}, linear_gemm("projection_gemm_dgrad", tokens_, heads_, hidden_)),
      weight_gradient_gemm("projection_gemm_wgrad", heads_, hidden_, tokens_)};
  add_core_backward(backward);
  backward.push_back(memory_bound("qkv_join_backward", s_.biases ? 6 : 4, {tokens_, qkv}));
  backward.push_back(linear_gemm("qkv_gemm_dgrad", tokens_, hidden_, qkv));
  backward.push_back(gathering({all(), true}, weight_gradient_gemm("qkv_gemm_wgrad", hidden_, qkv, tokens_)));
  backward.push_back(accumulation({{hidden_, qkv}, {heads_, hidden_}}, s_.gradient_bytes));
  made.backward = {{"attention_backward", std::move(backward), sum("backward", Dimension::heads, all())}};

  made.parameters.push_back({hidden_, qkv});
  add_bias(made.parameters, qkv);
  made.parameters.push_back({heads_, hidden_});
  add_bias(made.parameters, hidden_);
  return made;
}

// Keys and values of the other sequence are computed in each layer. Backward, their gradients become a
// gradient of that sequence, which is added to those of the other layers (read 4, write 2).
Sublayer Sublayers::cross_attention() const {
  const Extent both{2 * heads_.size, Dimension::heads};
  const Tensor read_part{{read_.size, Dimension::sequence}, hidden_};
  Sublayer made{"cross_attention", {norm_forward()}, Dimension::heads, {}, norm_parameters()};
  made.forward.push_back(gathering({all()}, linear_gemm("query_gemm", tokens_, heads_, hidden_)));
  made.forward.push_back(gathering({read()}, linear_gemm("key_value_gemm", read_, both, hidden_)));
  add_core(made.forward);
  made.forward.push_back(linear_gemm("projection_gemm", tokens_, hidden_, heads_));

  std::vector<Operator> backward{
      gathering({all()}, linear_gemm("projection_gemm_dgrad", tokens_, heads_, hidden_)),
      weight_gradient_gemm("projection_gemm_wgrad", heads_, hidden_, tokens_)};
  add_core_backward(backward);
  backward.push_back(memory_bound("key_value_join_backward", s_.biases ? 6 : 4, {read_, both}));
  backward.push_back(linear_gemm("key_value_gemm_dgrad", read_, hidden_, both));
  backward.push_back(
      gathering({read(), true}, weight_gradient_gemm("key_value_gemm_wgrad", hidden_, both, read_)));
  made.backward.push_back(
      {"cross_keys_backward", std::move(backward), sum("backward", Dimension::heads, read())});
  made.backward.push_back(
      {"cross_attention_backward",
       {memory_bound("other_sequence_gradient_sum", 6, read_part),
        linear_gemm("query_gemm_dgrad", tokens_, hidden_, heads_),
        gathering({all(), true}, weight_gradient_gemm("query_gemm_wgrad", hidden_, heads_, tokens_)),
        accumulation({{hidden_, heads_}, {hidden_, both}, {heads_, hidden_}}, s_.gradient_bytes)},
       sum("backward", Dimension::heads, all())});

  made.parameters.push_back({hidden_, heads_});
  add_bias(made.parameters, heads_);
  made.parameters.push_back({hidden_, both});
  add_bias(made.parameters, both);
  made.parameters.push_back({heads_, hidden_});
  add_bias(made.parameters, hidden_);
  return made;
}

Sublayer Sublayers::mlp() const {
  const std::string& name = s_.activation;
  Sublayer made{"mlp", {norm_forward()}, Dimension::inner, {}, norm_parameters()};
  made.forward.push_back(gathering({all()}, linear_gemm("mlp_up_gemm", tokens_, inner_, hidden_)));
  made.forward.push_back(memory_bound(name.c_str(), 4, {tokens_, inner_}));
  made.forward.push_back(linear_gemm("mlp_down_gemm", tokens_, hidden_, inner_));
  made.backward = {
      {"mlp_backward",
       {gathering({all()}, linear_gemm("mlp_down_gemm_dgrad", tokens_, inner_, hidden_)),
        weight_gradient_gemm("mlp_down_gemm_wgrad", inner_, hidden_, tokens_),
        memory_bound((name + "_backward").c_str(), s_.biases ? 8 : 6, {tokens_, inner_}),
        linear_gemm("mlp_up_gemm_dgrad", tokens_, hidden_, inner_),
        gathering({all(), true}, weight_gradient_gemm("mlp_up_gemm_wgrad", hidden_, inner_, tokens_)),
        accumulation({{hidden_, inner_}, {inner_, hidden_}}, s_.gradient_bytes)},
       sum("backward", Dimension::inner, all())}};
  made.parameters.push_back({hidden_, inner_});
  add_bias(made.parameters, inner_);
  made.parameters.push_back({inner_, hidden_});
  add_bias(made.parameters, hidden_);
  return made;
}

ModelLayer Sublayers::layer(const std::string& name, const std::vector<Sublayer>& sublayers) const {
  ModelLayer made{name, {}, {}, {}};
  for (const Sublayer& sublayer : sublayers) {
    ModelPart part{sublayer.name + "_forward", {}, sum("forward", sublayer.over, all())};
    if (!made.forward.empty()) part.operators.push_back(residual_forward());
    part.operators.insert(part.operators.end(), sublayer.forward.begin(), sublayer.forward.end());
    made.forward.push_back(std::move(part));
    made.parameters.insert(made.parameters.end(), sublayer.parameters.begin(), sublayer.parameters.end());
  }
  made.forward.push_back({"layer_end_forward", {residual_forward()}, {}});
  // The sum of a sublayer's gradient is followed by its norm's gradient, which is added to the residual's.
  const std::vector<Operator> behind{norm_backward(), memory_bound("residual_backward", 6, part())};
  std::vector<Operator> before;
  for (auto sublayer = sublayers.rbegin(); sublayer != sublayers.rend(); ++sublayer) {
    for (const Operator& op : residual_backward()) before.push_back(op);
    for (const ModelPart& part : sublayer->backward) {
      ModelPart whole = part;
      whole.operators.insert(whole.operators.begin(), before.begin(), before.end());
      before.clear();
      made.backward.push_back(std::move(whole));
    }
    before = behind;
  }
  made.backward.push_back({"layer_begin_backward", behind, {}});
  return made;
}

}  // namespace netsim
