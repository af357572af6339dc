// llama: a decoder of the LLaMA kind (llama.h).
#include <algorithm>
#include <memory>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/training/model/llama.h"
#include "sim/training/model/model_kind.h"

namespace netsim {
namespace {

class LlamaKind final : public ModelKind {
 public:
  LlamaKind(const LlamaModel& model, const ConfigNode& where) : m_(model) {
    if (m_.latent.key_value == 0) {
      require_divides(where, "hidden", m_.hidden, "heads", m_.heads);
      require_divides(where, "heads", m_.heads, "groups", m_.groups);
    }
    check_experts(m_.experts, entry_or_self(where, "experts"));
    m_.experts.inner = m_.expert_inner();
  }

  Model make(std::int64_t microbatch, std::int64_t gradient_bytes) const override {
    return make_llama(m_, microbatch, gradient_bytes);
  }
  double flops(std::int64_t batch, bool) const override { return llama_flops(m_, batch); }
  std::int64_t layers() const override { return m_.layers; }
  std::int64_t sequence() const override { return m_.sequence; }
  std::vector<std::pair<std::string, std::int64_t>> divided() const override {
    std::vector<std::pair<std::string, std::int64_t>> all{{"heads", m_.heads}};
    if (m_.latent.key_value == 0) {
      all.emplace_back("groups", m_.groups);
      all.emplace_back("hidden", m_.hidden);
    }
    if (m_.layers_with_experts() < m_.layers || m_.multi_token) all.emplace_back("inner", m_.inner);
    if (m_.experts.count > 0 && m_.experts.shared > 0)
      all.emplace_back("experts.inner", m_.experts.shared * m_.expert_inner());
    all.emplace_back("vocabulary", m_.vocabulary);
    return all;
  }
  const ExpertsModel* experts() const override {
    const bool in_prediction = m_.multi_token && m_.experts.in_layer(m_.layers);
    return m_.layers_with_experts() > 0 || in_prediction ? &m_.experts : nullptr;
  }
  double largest_bytes(std::int64_t microbatch) const override {
    const double tokens = static_cast<double>(microbatch) * static_cast<double>(m_.sequence);
    const double copies = m_.experts.count > 0 ? static_cast<double>(m_.experts.top_k) : 1;
    const double filled = std::max(1.0, m_.experts.capacity) * copies;
    const double inner = static_cast<double>(std::max(2 * m_.inner, 2 * m_.expert_inner())) * filled;
    const double h = static_cast<double>(m_.hidden), f = static_cast<double>(m_.inner);
    const double widest = std::max({h * filled, inner, static_cast<double>(m_.vocabulary)});
    const double experts = static_cast<double>(m_.experts.count + m_.experts.shared) * 3.0 * h *
                           static_cast<double>(m_.expert_inner());
    const double weights = static_cast<double>(m_.layers) * (4.0 * h * h + 3.0 * h * f + experts);
    return std::max(32.0 * tokens * widest, 10.0 * weights);
  }
  std::string resize(std::optional<std::int64_t> layers, std::optional<std::int64_t> sequence) override {
    m_.layers = layers.value_or(m_.layers);
    m_.sequence = sequence.value_or(m_.sequence);
    return {};
  }

 private:
  static void require_divides(const ConfigNode& where, const char* what, std::int64_t value, const char* key,
                              std::int64_t divisor) {
    if (value % divisor == 0) return;
    entry_or_self(where, key)
        .fail(std::string(what) + " (" + std::to_string(value) + ") cannot be divided by " +
              std::to_string(divisor) + " " + key);
  }
  LlamaModel m_;
};

Parameters<LlamaModel> llama_parameters() {
  using P = LlamaModel;
  return Parameters<P>()
      .integer("layers", &P::layers, {1, 100'000}, "decoder layers")
      .integer("hidden", &P::hidden, {1, 1'000'000}, "hidden size")
      .integer("heads", &P::heads, {1, 1'000'000}, "attention heads")
      .integer("groups", &P::groups, {1, 1'000'000}, "groups of heads that share keys and values")
      .integer("inner", &P::inner, {1, 10'000'000}, "inner size of the MLP")
      .integer("sequence", &P::sequence, {1, 10'000'000}, "sequence length")
      .integer("vocabulary", &P::vocabulary, {1, 10'000'000}, "vocabulary size, padded")
      .flag("gated", &P::gated, "SwiGLU, with a second matrix as its gate; false: squared ReLU")
      .flag("tied", &P::tied, "embedding and logits share their weights")
      .flag("multi_token", &P::multi_token, "one more token is predicted, by an additional layer")
      .section("experts", &P::experts, experts_parameters(),
               "routed experts in place of the MLP in some layers")
      .section("latent", &P::latent, latent_attention_parameters(), "multi-head latent attention");
}

const Registration<ModelKind> kLlama{
    "llama",
    "a decoder of the LLaMA kind: grouped-query and fused attention, gated MLP; the default is Llama 3 8B",
    llama_parameters(),
    [](const LlamaModel& p, const ConfigNode& where) { return std::make_unique<LlamaKind>(p, where); }};

}  // namespace
}  // namespace netsim
