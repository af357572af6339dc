// llama: see llama.h.
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/workload/model/llama.h"
#include "sim/workload/model/model_kind.h"

namespace netsim {
namespace {

class LlamaKind final : public ModelKind {
 public:
  LlamaKind(const LlamaModel& model, const ConfigNode& where) : m_(model) {
    require_divides(where, "hidden", m_.hidden, "heads", m_.heads);
    require_divides(where, "heads", m_.heads, "groups", m_.groups);
  }

  Model make(std::int64_t microbatch, std::int64_t gradient_bytes) const override {
    return make_llama(m_, microbatch, gradient_bytes);
  }
  double flops(std::int64_t batch, bool) const override { return llama_flops(m_, batch); }
  std::int64_t layers() const override { return m_.layers; }
  std::int64_t sequence() const override { return m_.sequence; }
  std::vector<std::pair<std::string, std::int64_t>> divided() const override {
    return {{"heads", m_.heads},
            {"groups", m_.groups},
            {"hidden", m_.hidden},
            {"inner", m_.inner},
            {"vocabulary", m_.vocabulary}};
  }
  double largest_bytes(std::int64_t microbatch) const override {
    const double tokens = static_cast<double>(microbatch) * static_cast<double>(m_.sequence);
    const double widest = static_cast<double>(std::max({m_.hidden, 2 * m_.inner, m_.vocabulary}));
    const double h = static_cast<double>(m_.hidden), f = static_cast<double>(m_.inner);
    const double weights = static_cast<double>(m_.layers) * (4.0 * h * h + 3.0 * h * f);
    return std::max(32.0 * tokens * widest, 10.0 * weights);
  }
  void resize(std::int64_t layers, std::int64_t sequence) override {
    m_.layers = layers;
    m_.sequence = sequence;
  }

 private:
  static void require_divides(const ConfigNode& where, const char* what, std::int64_t value, const char* key,
                              std::int64_t divisor) {
    if (value % divisor == 0) return;
    const ConfigNode* named = where.find(key);
    (named != nullptr ? *named : where)
        .fail(std::string(what) + " (" + std::to_string(value) + ") cannot be divided by " +
              std::to_string(divisor) + " " + key);
  }
  LlamaModel m_;
};

Parameters<LlamaModel> parameters() {
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
      .flag("tied", &P::tied, "embedding and logits share their weights");
}

const Registration<ModelKind> kRegistration{
    "llama",
    "a decoder of the LLaMA kind: grouped-query and fused attention, gated MLP; the default is Llama 3 8B",
    parameters(),
    [](const LlamaModel& p, const ConfigNode& where) { return std::make_unique<LlamaKind>(p, where); }};

}  // namespace
}  // namespace netsim
