// gpt: a GPT as Megatron-LM runs it (transformer.h).
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/model/model_kind.h"
#include "sim/training/model/transformer.h"

namespace netsim {
namespace {

class Gpt final : public ModelKind {
 public:
  Gpt(const TransformerModel& model, const ConfigNode& where) : m_(model) {
    if (m_.hidden % m_.heads == 0) return;
    const ConfigNode* heads = where.find("heads");
    (heads != nullptr ? *heads : where)
        .fail("hidden (" + std::to_string(m_.hidden) + ") cannot be divided by " + std::to_string(m_.heads) +
              " heads");
  }

  Model make(std::int64_t microbatch, std::int64_t gradient_bytes) const override {
    return make_transformer(m_, microbatch, gradient_bytes);
  }
  double flops(std::int64_t batch, bool recompute) const override {
    return transformer_flops(m_, batch, recompute);
  }
  std::int64_t layers() const override { return m_.layers; }
  std::int64_t sequence() const override { return m_.sequence; }
  std::vector<std::pair<std::string, std::int64_t>> divided() const override {
    return {{"heads", m_.heads}, {"hidden", m_.hidden}, {"vocabulary", m_.vocabulary}};
  }
  double largest_bytes(std::int64_t microbatch) const override {
    const double b = static_cast<double>(microbatch), s = static_cast<double>(m_.sequence);
    const double h = static_cast<double>(m_.hidden);
    const double tensor = 32.0 * b * s * static_cast<double>(std::max(m_.hidden, m_.vocabulary));
    const double scores = 8.0 * b * static_cast<double>(m_.heads) * s * s;
    return std::max({tensor, scores, 120.0 * h * h * static_cast<double>(m_.layers)});
  }
  std::string resize(std::optional<std::int64_t> layers, std::optional<std::int64_t> sequence) override {
    m_.layers = layers.value_or(m_.layers);
    m_.sequence = sequence.value_or(m_.sequence);
    return {};
  }

 private:
  TransformerModel m_;
};

Parameters<TransformerModel> gpt_parameters() {
  using P = TransformerModel;
  return Parameters<P>()
      .integer("layers", &P::layers, {1, 100'000}, "transformer layers (l)")
      .integer("hidden", &P::hidden, {1, 1'000'000}, "hidden size (h)")
      .integer("heads", &P::heads, {1, 1'000'000}, "attention heads")
      .integer("sequence", &P::sequence, {1, 10'000'000}, "sequence length (s)")
      .integer("vocabulary", &P::vocabulary, {1, 10'000'000}, "vocabulary size (V), padded")
      .flag("tied", &P::tied, "embedding and logits share their weights");
}

const Registration<ModelKind> kGpt{
    "gpt", "a GPT as Megatron-LM trained it in 2021; the default is GPT-3 175B", gpt_parameters(),
    [](const TransformerModel& p, const ConfigNode& where) { return std::make_unique<Gpt>(p, where); }};

}  // namespace
}  // namespace netsim
