#include "sim/training/model/llama.h"

#include <utility>

#include "sim/training/model/moe.h"

namespace netsim {
namespace {

class Llama {
 public:
  Llama(const LlamaModel& model, std::int64_t microbatch, std::int64_t gradient_bytes)
      : model_(model),
        gradient_bytes_(gradient_bytes),
        head_size_(model.hidden / model.heads),
        moe_(model.experts, model.expert_inner(), model.gated, model.hidden, model.sequence * microbatch,
             gradient_bytes),
        latent_(model.latent, model.hidden, model.heads, model.sequence, microbatch, gradient_bytes),
        hidden_{model.hidden},
        tokens_{model.sequence * microbatch, Dimension::tokens},
        queries_{model.hidden, Dimension::heads},
        keys_{model.groups * head_size_, Dimension::heads},
        qkv_{model.hidden + 2 * model.groups * head_size_, Dimension::heads},
        batch_heads_{microbatch * model.heads, Dimension::heads},
        inner_{model.inner, Dimension::inner},
        up_{(model.gated ? 2 : 1) * model.inner, Dimension::inner},
        vocabulary_{model.vocabulary, Dimension::vocabulary} {}

  Model make() const {
    Model model;
    model.first = embedding();
    add_body(model);
    model.last = model_.multi_token ? head_with_prediction() : head();
    model.boundary = a();
    if (shares_words()) model.shared = words();
    model.gradient_bytes = gradient_bytes_;
    return model;
  }

 private:
  // Adds the kinds of layers in the order of their first appearance.
  void add_body(Model& model) const {
    std::optional<std::uint32_t> kinds[2];  // kinds without and with experts
    for (std::int64_t i = 0; i < model_.layers; ++i) {
      const bool experts = model_.experts.in_layer(i);
      std::optional<std::uint32_t>& kind = kinds[experts ? 1 : 0];
      if (!kind) {
        kind = static_cast<std::uint32_t>(model.kinds.size());
        model.kinds.push_back(experts ? layer_with_experts() : layer());
      }
      model.body.push_back(*kind);
    }
    if (kinds[1] || (model_.multi_token && model_.experts.in_layer(model_.layers)))
      model.routed = Model::Routed{model_.experts, tokens_.size, model_.hidden};
  }

  // Activations: a() where each token is computed for itself, all() for all tokens.
  Tensor a() const { return {{tokens_.size, Dimension::sequence}, hidden_}; }
  Tensor all() const { return {tokens_, hidden_}; }
  Tensor q() const { return {tokens_, queries_}; }  // queries, and the output of attention
  Tensor k() const { return {tokens_, keys_}; }     // keys, and as many values
  // Keys as attention reads them.
  Tensor attended() const { return {{tokens_.size, Dimension::keys}, keys_}; }
  Tensor z() const { return {tokens_, vocabulary_}; }  // logits
  Tensor words() const { return {vocabulary_, hidden_}; }
  // Return GEMMs of weight matrices, and of their gradients.
  static Operator weights(const char* name, Extent m, Extent n, Extent k) {
    return linear(gemm(name, m, n, k));
  }
  static Operator wgrad(const char* name, Extent m, Extent n, Extent k) {
    return computing_weights(weights(name, m, n, k));
  }
  PartialSum sum(const char* name, Dimension over) const { return {name, over, all(), 2, true}; }
  PartialSum sum_of_tokens() const { return {"loss", Dimension::vocabulary, {tokens_}, 4}; }

  // Each query sees half of the keys, itself included. Bytes: forward reads q, k, v and writes the output.
  // Backward reads q, k, v, the output and its gradient and writes three gradients.
  Operator attention(bool forward) const {
    Operator op =
        gemm(forward ? "flash_attention" : "flash_attention_backward", {model_.sequence, Dimension::tokens},
             {(model_.sequence + 1) / 2, Dimension::keys}, {(forward ? 2 : 5) * head_size_}, batch_heads_);
    op.kind = Kernel::Kind::attention;
    op.traffic = {{forward ? 4 : 8, q()}, {forward ? 4 : 8, attended()}};
    // Queries, keys, values and the result are saved; of the softmax only its sums.
    if (forward) {
      op.saved = {saved(4, q()), saved(4, k()),
                  saved_of_core(4, {batch_heads_, {model_.sequence, Dimension::tokens}})};
    }
    op.backward = !forward;
    return in_core({q(), k(), k(), q()}, std::move(op));
  }

  ModelLayer layer() const {
    return layer_of("layer", {mlp_forward()}, {mlp_backward()}, {{hidden_, up_}, {inner_, hidden_}});
  }
  ModelLayer layer_with_experts() const {
    return layer_of("moe_layer", moe_.forward(), moe_.backward(), moe_.parameters());
  }
  ModelLayer layer_of(const char* name, std::vector<ModelPart> mlp_forward,
                      std::vector<ModelPart> mlp_backward, const std::vector<Tensor>& mlp_parameters) const {
    ModelLayer layer{name, {attention_forward()}, std::move(mlp_backward), {{{2}, hidden_}}};
    for (ModelPart& part : mlp_forward) layer.forward.push_back(std::move(part));
    layer.forward.push_back(layer_end_forward());
    for (ModelPart& part : attention_backward()) layer.backward.push_back(std::move(part));
    layer.backward.push_back(layer_begin_backward());
    for (const std::vector<Tensor>& parameters : {attention_parameters(), mlp_parameters})
      layer.parameters.insert(layer.parameters.end(), parameters.begin(), parameters.end());
    return layer;
  }
  bool is_latent() const { return model_.latent.key_value > 0; }
  std::vector<Tensor> attention_parameters() const {
    return is_latent() ? latent_.parameters() : std::vector<Tensor>{{hidden_, qkv_}, {queries_, hidden_}};
  }

  // Bytes of the memory-bound kernels, forward: norm (read 2, write 2), rotation of queries and keys (read 2,
  // write 2). The sum with the residual reads 4 and writes 2. The activation reads the GEMM's result (2 or 4)
  // and writes 2.
  ModelPart attention_forward() const {
    if (is_latent()) return {"attention_forward", latent_.forward(), sum("forward", Dimension::heads)};
    return {"attention_forward",
            {saving({saved(2, a())}, norm()),
             saving({normalised()}, gathering({all()}, weights("qkv_gemm", tokens_, qkv_, hidden_))),
             memory_bound("rotary", {{4, q()}, {4, k()}}), attention(true),
             saving({saved_elsewhere(q())}, weights("projection_gemm", tokens_, hidden_, queries_))},
            sum("forward", Dimension::heads)};
  }
  ModelPart mlp_forward() const {
    return {"mlp_forward",
            {memory_bound("residual", 6, a()), saving({saved(2, a())}, norm()),
             saving({normalised()}, gathering({all()}, weights("mlp_up_gemm", tokens_, up_, hidden_))),
             saving({saved(2, {tokens_, up_})},
                    part_of(Module::activation,
                            memory_bound(activation(), model_.gated ? 6 : 4, {tokens_, inner_}))),
             saving({result_of(Module::activation, saved_operand({tokens_, inner_}))},
                    weights("mlp_down_gemm", tokens_, hidden_, inner_))},
            sum("forward", Dimension::inner)};
  }
  ModelPart layer_end_forward() const {
    return {"layer_end_forward", {memory_bound("residual", 6, a())}, {}};
  }
  Operator norm() const { return part_of(Module::norm, memory_bound("rms_norm", 4, a())); }
  Saved normalised() const { return result_of(Module::norm, saved_operand(a())); }
  const char* activation() const { return model_.gated ? "swiglu" : "squared_relu"; }

  // Bytes of the memory-bound kernels, backward: norm (gradient 2, input 2, write 2; gamma's gradient reads
  // 4). Sum with the residual's gradient (read 4, write 2), rotation (read 2, write 2), activation (gradient
  // 2, input 2 or 4, write 2 or 4).
  ModelPart mlp_backward() const {
    return {"mlp_backward",
            {gathering({all()}, weights("mlp_down_gemm_dgrad", tokens_, inner_, hidden_)),
             wgrad("mlp_down_gemm_wgrad", inner_, hidden_, tokens_),
             memory_bound(model_.gated ? "swiglu_backward" : "squared_relu_backward", model_.gated ? 10 : 6,
                          {tokens_, inner_}),
             weights("mlp_up_gemm_dgrad", tokens_, hidden_, up_),
             gathering({all(), true}, wgrad("mlp_up_gemm_wgrad", hidden_, up_, tokens_)),
             accumulation({{hidden_, up_}, {inner_, hidden_}}, gradient_bytes_)},
            sum("backward", Dimension::inner)};
  }
  std::vector<ModelPart> attention_backward() const {
    if (is_latent())
      return latent_.backward(
          {memory_bound("rms_norm_backward", 10, a()), memory_bound("residual_backward", 6, a())});
    return {{"attention_backward",
             {memory_bound("rms_norm_backward", 10, a()), memory_bound("residual_backward", 6, a()),
              gathering({all()}, weights("projection_gemm_dgrad", tokens_, queries_, hidden_)),
              wgrad("projection_gemm_wgrad", queries_, hidden_, tokens_), attention(false),
              memory_bound("rotary_backward", {{4, q()}, {4, k()}}),
              weights("qkv_gemm_dgrad", tokens_, hidden_, qkv_),
              gathering({all(), true}, wgrad("qkv_gemm_wgrad", hidden_, qkv_, tokens_)),
              accumulation({{hidden_, qkv_}, {queries_, hidden_}}, gradient_bytes_)},
             sum("backward", Dimension::heads)}};
  }
  ModelPart layer_begin_backward() const {
    return {"layer_begin_backward",
            {memory_bound("rms_norm_backward", 10, a()), memory_bound("residual_backward", 6, a())},
            {}};
  }

  // Gathers rows (read 2, write 2) and zeroes those that other ranks hold (2). After the sum [b s h] is
  // transposed to [s b h] (read 2, write 2). Backward transposes it back, zeroes a dense gradient (2) and
  // scatters the rows into it (read 2, add 4).
  ModelLayer embedding() const {
    return {"embedding",
            {{"embedding_lookup",
              {memory_bound("embedding_gather", 6, all())},
              sum("embedding", Dimension::vocabulary)},
             {"embedding_end", {memory_bound("embedding_transpose", 4, a())}, {}}},
            {{"embedding_backward",
              {memory_bound("embedding_transpose", 4, a()),
               gathering({all()},
                         computing_weights(memory_bound("embedding_gradient", {{2, words()}, {6, all()}}))),
               accumulation({words()}, gradient_bytes_)},
              {}}},
            shares_words() ? std::vector<Tensor>{} : std::vector<Tensor>{words()}};
  }
  // Both ends need the embedding if the logits use it, or the prediction of one more token.
  bool shares_words() const { return model_.tied || model_.multi_token; }

  // Logits and a vocabulary-parallel cross entropy in fp32, as in the GPT; transformer.cpp has the bytes.
  ModelLayer head() const {
    std::vector<Tensor> parameters;
    if (!model_.tied) parameters.push_back(words());
    parameters.push_back({hidden_});
    return {
        "head",
        {{"logits_forward",
          {saving({saved(2, a())}, memory_bound("final_rms_norm", 4, a())),
           saving({saved(2, a())}, gathering({all()}, gemm("logits_gemm", tokens_, vocabulary_, hidden_))),
           memory_bound("logits_to_fp32", 6, z()), memory_bound("logits_maximum", 4, z())},
          sum_of_tokens()},
         {"loss_predicted", {memory_bound("logits_subtract_maximum", 8, z())}, sum_of_tokens()},
         {"loss_sum",
          {memory_bound("logits_exponential", 8, z()), memory_bound("logits_sum", 4, z())},
          sum_of_tokens()},
         {"loss_end", {saving({saved(4, z())}, memory_bound("softmax_normalise", 8, z()))}, {}}},
        {{"logits_backward",
          {memory_bound("loss_backward", 8, z()), memory_bound("logits_to_bf16", 6, z()),
           gemm("logits_gemm_dgrad", tokens_, hidden_, vocabulary_),
           gathering({all(), true},
                     computing_weights(gemm("logits_gemm_wgrad", hidden_, vocabulary_, tokens_))),
           accumulation({words()}, gradient_bytes_)},
          sum("logits_backward", Dimension::vocabulary)},
         {"final_norm_backward", {memory_bound("rms_norm_backward", 10, a())}, {}}},
        std::move(parameters)};
  }

  // The head, then the prediction of the token after the next one. It has the embedding of the next token,
  // joined with the body's output, a layer, and logits; backward in reverse order. The projection that joins
  // them is on all ranks of a tensor-parallel group, for their tokens. Bytes: norms as above; joining (read
  // 4, write 4).
  ModelLayer head_with_prediction() const {
    const ModelLayer first = embedding(), last = head();
    const ModelLayer body = model_.experts.in_layer(model_.layers) ? layer_with_experts() : layer();
    const Extent part{tokens_.size, Dimension::sequence}, both{2 * model_.hidden};
    const ModelPart join{
        "prediction_join",
        {saving({saved(2, a())}, memory_bound("rms_norm", 4, a())),
         saving({saved(2, a())}, memory_bound("rms_norm", 4, a())), memory_bound("join", 8, a()),
         saving({saved_operand({part, both})}, weights("join_gemm", part, hidden_, both))},
        {}};
    const ModelPart join_backward{
        "prediction_join_backward",
        {weights("join_gemm_dgrad", part, both, hidden_), wgrad("join_gemm_wgrad", both, hidden_, part),
         accumulation({{both, hidden_}}, gradient_bytes_), memory_bound("rms_norm_backward", 10, a()),
         memory_bound("rms_norm_backward", 10, a())},
        {}};
    const ModelPart sum_backward{"prediction_sum_backward", {memory_bound("residual_backward", 6, a())}, {}};
    ModelLayer all = last;
    all.backward.clear();
    const auto append = [](std::vector<ModelPart>& to, const std::vector<ModelPart>& parts) {
      to.insert(to.end(), parts.begin(), parts.end());
    };
    for (const auto& parts : {first.forward, {join}, body.forward, last.forward}) append(all.forward, parts);
    for (const auto& parts :
         {last.backward, body.backward, {join_backward}, first.backward, last.backward, {sum_backward}})
      append(all.backward, parts);
    all.parameters.insert(all.parameters.end(), body.parameters.begin(), body.parameters.end());
    all.parameters.push_back({both, hidden_});
    all.parameters.push_back({{3}, hidden_});  // norms of both inputs, and before the logits
    return all;
  }

  LlamaModel model_;
  std::int64_t gradient_bytes_, head_size_;
  MoeLayer moe_;
  LatentAttention latent_;
  Extent hidden_, tokens_, queries_, keys_, qkv_, batch_heads_, inner_, up_, vocabulary_;
};

}  // namespace

Model make_llama(const LlamaModel& model, std::int64_t microbatch, std::int64_t gradient_bytes) {
  return Llama(model, microbatch, gradient_bytes).make();
}

std::int64_t LlamaModel::layers_with_experts() const {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < layers; ++i) count += experts.in_layer(i) ? 1 : 0;
  return count;
}

double llama_flops(const LlamaModel& model, std::int64_t batch) {
  const double b = static_cast<double>(batch), s = static_cast<double>(model.sequence);
  const double l = static_cast<double>(model.layers), h = static_cast<double>(model.hidden);
  const double f = static_cast<double>(model.inner), v = static_cast<double>(model.vocabulary);
  const double share = static_cast<double>(model.groups) / static_cast<double>(model.heads);
  const double attention =
      model.latent.key_value > 0
          ? latent_attention_flops_of_token(model.latent, model.hidden, model.heads, model.sequence)
          : 12.0 * h * h * (1.0 + share + s / h);
  const double mlp = (model.gated ? 18.0 : 12.0) * f * h;
  const double experts = moe_flops_of_token(model.experts, model.expert_inner(), model.gated, model.hidden);
  const auto with_experts = static_cast<double>(model.layers_with_experts());
  double all = l * attention + (l - with_experts) * mlp + with_experts * experts + 6.0 * v * h;
  if (model.multi_token)
    all += attention + (model.experts.in_layer(model.layers) ? experts : mlp) + 12.0 * h * h + 6.0 * v * h;
  return b * s * all;
}

}  // namespace netsim
