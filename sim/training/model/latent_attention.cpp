#include "sim/training/model/latent_attention.h"

#include <utility>

namespace netsim {

LatentAttention::LatentAttention(const LatentAttentionModel& model, std::int64_t hidden, std::int64_t heads,
                                 std::int64_t sequence, std::int64_t microbatch, std::int64_t gradient_bytes)
    : m_(model),
      gradient_bytes_(gradient_bytes),
      sequence_(sequence),
      hidden_{hidden},
      tokens_{sequence * microbatch},
      part_{sequence * microbatch, Dimension::sequence},
      batch_heads_{microbatch * heads, Dimension::heads},
      down_{model.query + model.key_value + model.rotary},
      queries_{heads * (model.plain + model.rotary), Dimension::heads},
      keys_values_{heads * (model.plain + model.value), Dimension::heads},
      values_{heads * model.value, Dimension::heads} {}

// Bytes of the memory-bound kernels, forward: norms (read 2, write 2) and rotation of the parts with position
// (read 2, write 2). The rotation writes the key's part for each head.
std::vector<Operator> LatentAttention::forward() const {
  const auto norm = [](Operator op) { return part_of(Module::norm, std::move(op)); };
  const auto normalised = [](Tensor tensor) {
    return result_of(Module::norm, saved_operand(std::move(tensor)));
  };
  const auto up = [](Operator op) { return part_of(Module::latent_up, std::move(op)); };
  const Saved key_value = normalised({part_, {m_.key_value}});
  std::vector<Operator> ops{
      saving({saved(2, {part_, hidden_})}, norm(memory_bound("rms_norm", 4, {part_, hidden_}))),
      saving({normalised({part_, hidden_})}, linear_gemm("attention_down_gemm", part_, down_, hidden_)),
      saving({saved(2, {part_, down_})}, norm(memory_bound("latent_norm", 4, {part_, down_})))};
  if (m_.query > 0) {
    ops.push_back(saving({normalised({part_, {m_.query}})},
                         up(gathering(Gather{{tokens_, down_}},
                                      linear_gemm("query_up_gemm", tokens_, queries_, {m_.query})))));
    ops.push_back(
        saving({key_value}, up(linear_gemm("key_value_up_gemm", tokens_, keys_values_, {m_.key_value}))));
  } else {
    ops.push_back(
        up(gathering(Gather{{tokens_, hidden_}}, linear_gemm("query_up_gemm", tokens_, queries_, hidden_))));
    ops.push_back(saving(
        {key_value}, up(gathering(Gather{{tokens_, down_}},
                                  linear_gemm("key_value_up_gemm", tokens_, keys_values_, {m_.key_value})))));
  }
  ops.push_back(up(memory_bound("rotary", 4, {tokens_, queries_})));
  ops.push_back(attention(true));
  ops.push_back(saving({saved_elsewhere({tokens_, values_})},
                       linear_gemm("projection_gemm", tokens_, hidden_, values_)));
  return ops;
}

// The gradient of the down-projected values is a sum over the heads.
std::vector<ModelPart> LatentAttention::backward(std::vector<Operator> before) const {
  const bool compressed = m_.query > 0;
  const Extent query = compressed ? Extent{m_.query} : hidden_;
  const Extent down{compressed ? down_.size : down_.size + hidden_.size};
  std::vector<Operator> ops = std::move(before);
  for (Operator& op : std::vector<Operator>{
           gathering(Gather{{tokens_, hidden_}},
                     linear_gemm("projection_gemm_dgrad", tokens_, values_, hidden_)),
           weight_gradient_gemm("projection_gemm_wgrad", values_, hidden_, tokens_), attention(false),
           memory_bound("rotary_backward", 4, {tokens_, queries_}),
           linear_gemm("query_up_gemm_dgrad", tokens_, query, queries_),
           gathering(Gather{{tokens_, down}, true},
                     weight_gradient_gemm("query_up_gemm_wgrad", query, queries_, tokens_)),
           linear_gemm("key_value_up_gemm_dgrad", tokens_, {m_.key_value}, keys_values_),
           weight_gradient_gemm("key_value_up_gemm_wgrad", {m_.key_value}, keys_values_, tokens_)})
    ops.push_back(std::move(op));
  return {{"attention_backward", std::move(ops),
           PartialSum{"backward", Dimension::heads, {tokens_, down}, 2, true}},
          {"attention_down_backward",
           {memory_bound("latent_norm_backward", 10, {part_, down_}),
            linear_gemm("attention_down_gemm_dgrad", part_, hidden_, down_),
            weight_gradient_gemm("attention_down_gemm_wgrad", hidden_, down_, part_),
            accumulation(matrices(), gradient_bytes_)},
           {}}};
}

std::vector<Tensor> LatentAttention::matrices() const {
  return {{hidden_, down_},
          {m_.query > 0 ? Extent{m_.query} : hidden_, queries_},
          {{m_.key_value}, keys_values_},
          {values_, hidden_}};
}

std::vector<Tensor> LatentAttention::parameters() const {
  std::vector<Tensor> all = matrices();
  all.push_back({{m_.query + m_.key_value}});  // norms
  return all;
}

// Each query sees half of the keys, itself included. Forward, the products are the scores and the sum of
// values. Backward, they are the scores again, gradients of queries and keys (each as long as the scores), of
// values and of the softmax's output. The bytes are those of grouped-query attention.
Operator LatentAttention::attention(bool forward) const {
  const std::int64_t key = m_.plain + m_.rotary;
  Operator op =
      gemm(forward ? "flash_attention" : "flash_attention_backward", {sequence_}, {(sequence_ + 1) / 2},
           {forward ? key + m_.value : 3 * key + 2 * m_.value}, batch_heads_);
  op.kind = Kernel::Kind::attention;
  const std::int64_t times = forward ? 1 : 2;
  op.traffic = {{4 * times, {tokens_, queries_}}, {4 * times, {tokens_, values_}}};
  // Queries and keys, values and the result are saved; of the softmax only its sums.
  if (forward) {
    op.saved = {result_of(Module::latent_up, saved(4, {tokens_, queries_})),
                result_of(Module::latent_up, saved(2, {tokens_, values_})), saved(2, {tokens_, values_}),
                saved_of_core(4, {batch_heads_, {sequence_}})};
  }
  op.backward = !forward;
  return op;
}

const Parameters<LatentAttentionModel>& latent_attention_parameters() {
  using P = LatentAttentionModel;
  static const auto p =
      Parameters<P>()
          .integer(
              "key_value", &P::key_value, {0, 1'000'000},
              "size of the compressed keys and values of a token, in elements; 0: attention is grouped-query")
          .integer("query", &P::query, {0, 1'000'000},
                   "size of the compressed query of a token, in elements; 0: queries are not compressed")
          .integer("plain", &P::plain, {1, 100'000}, "size of a head's query and key without position")
          .integer("rotary", &P::rotary, {1, 100'000}, "size of a head's query and key with position")
          .integer("value", &P::value, {1, 100'000}, "size of a head's value");
  return p;
}

double latent_attention_flops_of_token(const LatentAttentionModel& m, std::int64_t hidden, std::int64_t heads,
                                       std::int64_t sequence) {
  const auto h = static_cast<double>(hidden), a = static_cast<double>(heads);
  const auto key = static_cast<double>(m.plain + m.rotary), value = static_cast<double>(m.value);
  const double query = m.query > 0 ? static_cast<double>(m.query) : h;
  const double down = static_cast<double>(m.query + m.key_value + m.rotary);
  const double up = static_cast<double>(m.key_value) * a * (static_cast<double>(m.plain) + value);
  const double gemms = h * down + query * a * key + up + a * value * h;
  return 6.0 * gemms + 6.0 * static_cast<double>(sequence) * a * (key + value);
}

}  // namespace netsim
