// bert: a bidirectional encoder that is trained to predict masked tokens and whether a sentence follows
// another (Devlin et al., arXiv 1810.04805). As in NVIDIA's and Megatron-LM's trainings, logits are computed
// for the masked tokens only.
//
// Bytes of the memory-bound kernels beyond those of the layers (sublayers.cpp):
// - The embedding reads rows of words, positions and segments. It writes their normalised sum with dropout,
//   forward as in transformer.cpp.
// - Masked tokens are gathered (read 2, write 2), and their gradients scattered into zeros (2 for each token,
//   read 2, write 2).
// - Logits and loss are as in transformer.cpp.
#include <memory>
#include <utility>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/training/model/model_kind.h"
#include "sim/training/model/sublayers.h"

namespace netsim {
namespace {

struct BertModel {
  std::int64_t layers = 24, hidden = 1024, heads = 16, inner = 4096;
  std::int64_t sequence = 512, positions = 512, vocabulary = 30522;
  std::int64_t predictions = 80;  // max_predictions_per_seq of sequences of 512 (google-research/bert)
  bool fused = false;
};

class BertMaker {
 public:
  BertMaker(const BertModel& m, std::int64_t microbatch, std::int64_t gradient_bytes)
      : m_(m),
        gradient_bytes_(gradient_bytes),
        layers_(shape(m, microbatch, gradient_bytes)),
        hidden_{m.hidden},
        masked_{m.predictions * microbatch, Dimension::tokens},
        sequences_{microbatch},
        vocabulary_{m.vocabulary, Dimension::vocabulary} {}

  Model make() const {
    Model model;
    model.first = embedding();
    model.kinds = {layers_.layer("layer", {layers_.attention(), layers_.mlp()})};
    model.body.assign(static_cast<std::size_t>(m_.layers), 0);
    model.last = head();
    model.boundary = layers_.part();
    model.shared = words();
    model.gradient_bytes = gradient_bytes_;
    return model;
  }

 private:
  static SublayerShape shape(const BertModel& m, std::int64_t microbatch, std::int64_t gradient_bytes) {
    SublayerShape s;
    s.hidden = m.hidden;
    s.heads = m.heads;
    s.head_size = m.hidden / m.heads;
    s.inner = m.inner;
    s.queries = s.keys = m.sequence;
    s.microbatch = microbatch;
    s.gradient_bytes = gradient_bytes;
    s.fused = m.fused;
    return s;
  }
  Tensor words() const { return {vocabulary_, hidden_}; }
  Tensor a() const { return layers_.part(); }
  Tensor rows() const { return {masked_, hidden_}; }
  Tensor z() const { return {masked_, vocabulary_}; }
  PartialSum loss() const { return {"loss", Dimension::vocabulary, {masked_}, 4}; }

  ModelLayer embedding() const {
    return {"embedding",
            {{"embedding_lookup",
              {memory_bound("embedding_gather", 6, layers_.all())},
              PartialSum{"embedding", Dimension::vocabulary, layers_.all(), 2, true}},
             {"embedding_end",
              {memory_bound("position_embedding", 6, a()), memory_bound("segment_embedding", 6, a()),
               layers_.norm_forward(), memory_bound("embedding_dropout", 5, a())},
              {}}},
            {{"embedding_backward",
              {memory_bound("embedding_dropout_backward", 5, a()), layers_.norm_backward(),
               gathering({layers_.all()}, computing_weights(memory_bound(
                                              "embedding_gradient", {{2, words()}, {6, layers_.all()}}))),
               accumulation({words()}, gradient_bytes_)},
              {}}},
            {{{m_.positions}, hidden_}, {{2}, hidden_}, {{2}, hidden_}}};  // positions, segments, the norm
  }

  // The masked tokens' transformation, activation, norm and logits, then the pooler of each sequence's first
  // token and the classifier behind it.
  ModelLayer head() const {
    const Extent classes{2};
    const Tensor first{sequences_, hidden_};
    const auto whole = [](const char* name, Extent m, Extent n, Extent k) { return gemm(name, m, n, k); };
    return {"head",
            {{"logits_forward",
              {gathering({layers_.all()}, memory_bound("masked_gather", 4, rows())),
               whole("transform_gemm", masked_, hidden_, hidden_), memory_bound("bias_gelu", 4, rows()),
               memory_bound("layer_norm", 4, rows()), whole("pooler_gemm", sequences_, hidden_, hidden_),
               memory_bound("bias_tanh", 4, first), whole("next_sentence_gemm", sequences_, classes, hidden_),
               gemm("logits_gemm", masked_, vocabulary_, hidden_), memory_bound("logits_to_fp32", 6, z()),
               memory_bound("logits_maximum", 4, z())},
              loss()},
             {"loss_predicted", {memory_bound("logits_subtract_maximum", 8, z())}, loss()},
             {"loss_sum",
              {memory_bound("logits_exponential", 8, z()), memory_bound("logits_sum", 4, z())},
              loss()},
             {"loss_end", {memory_bound("softmax_normalise", 8, z())}, {}}},
            {{"logits_backward",
              {memory_bound("loss_backward", 8, z()), memory_bound("logits_to_fp16", 6, z()),
               gemm("logits_gemm_dgrad", masked_, hidden_, vocabulary_),
               computing_weights(gemm("logits_gemm_wgrad", hidden_, vocabulary_, masked_)),
               accumulation({words()}, gradient_bytes_)},
              PartialSum{"logits_backward", Dimension::vocabulary, rows(), 2}},
             {"head_backward",
              {memory_bound("layer_norm_backward", 10, rows()), memory_bound("bias_gelu_backward", 8, rows()),
               whole("transform_gemm_dgrad", masked_, hidden_, hidden_),
               computing_weights(whole("transform_gemm_wgrad", hidden_, hidden_, masked_)),
               whole("next_sentence_gemm_dgrad", sequences_, hidden_, classes),
               computing_weights(whole("next_sentence_gemm_wgrad", hidden_, classes, sequences_)),
               memory_bound("bias_tanh_backward", 8, first),
               whole("pooler_gemm_dgrad", sequences_, hidden_, hidden_),
               computing_weights(whole("pooler_gemm_wgrad", hidden_, hidden_, sequences_)),
               accumulation({{hidden_, hidden_}, {hidden_, hidden_}}, gradient_bytes_),
               memory_bound("masked_scatter", {{2, a()}, {4, rows()}})},
              {}}},
            {{hidden_, hidden_},
             {hidden_},
             {{2}, hidden_},
             {vocabulary_},  // transformation, its norm, logits' biases
             {hidden_, hidden_},
             {hidden_},
             {hidden_, classes},
             {classes}}};
  }

  BertModel m_;
  std::int64_t gradient_bytes_;
  Sublayers layers_;
  Extent hidden_, masked_, sequences_, vocabulary_;
};

class Bert final : public ModelKind {
 public:
  Bert(const BertModel& model, const ConfigNode& where) : m_(model) {
    const auto fail = [&](const char* key, const std::string& message) {
      entry_or_self(where, key).fail(message);
    };
    if (m_.hidden % m_.heads != 0) {
      fail("heads", "hidden (" + std::to_string(m_.hidden) + ") cannot be divided by " +
                        std::to_string(m_.heads) + " heads");
    }
    if (m_.sequence > m_.positions)
      fail("sequence", "sequence is " + std::to_string(m_.sequence) + ", and there are " +
                           std::to_string(m_.positions) + " positions");
    if (m_.predictions > m_.sequence)
      fail("predictions", "a sequence of " + std::to_string(m_.sequence) + " tokens cannot have " +
                              std::to_string(m_.predictions) + " masked ones");
  }

  Model make(std::int64_t microbatch, std::int64_t gradient_bytes) const override {
    return BertMaker(m_, microbatch, gradient_bytes).make();
  }
  std::int64_t layers() const override { return m_.layers; }
  std::int64_t sequence() const override { return m_.sequence; }
  std::vector<std::pair<std::string, std::int64_t>> divided() const override {
    return {{"heads", m_.heads}, {"inner", m_.inner}, {"vocabulary", m_.vocabulary}};
  }
  std::string resize(std::optional<std::int64_t> layers, std::optional<std::int64_t> sequence) override {
    if (sequence && (*sequence > m_.positions || *sequence < m_.predictions)) {
      return "sequences of this model have from " + std::to_string(m_.predictions) +
             " (its predictions) to " + std::to_string(m_.positions) + " tokens (its positions)";
    }
    m_.layers = layers.value_or(m_.layers);
    m_.sequence = sequence.value_or(m_.sequence);
    return {};
  }
  std::string refuse(Division division) const override {
    return division == Division::context
               ? "context parallelism is for decoders: an encoder's sequences are short"
               : std::string();
  }

 private:
  BertModel m_;
};

Parameters<BertModel> bert_parameters() {
  using P = BertModel;
  return Parameters<P>()
      .integer("layers", &P::layers, {1, 100'000}, "encoder layers")
      .integer("hidden", &P::hidden, {1, 1'000'000}, "hidden size")
      .integer("heads", &P::heads, {1, 1'000'000}, "attention heads")
      .integer("inner", &P::inner, {1, 10'000'000}, "inner size of the MLP")
      .integer("sequence", &P::sequence, {1, 1'000'000}, "sequence length")
      .integer("positions", &P::positions, {1, 1'000'000}, "positions that have an embedding")
      .integer("predictions", &P::predictions, {1, 1'000'000},
               "masked tokens of a sequence, for which logits are computed")
      .integer("vocabulary", &P::vocabulary, {1, 10'000'000}, "vocabulary size")
      .flag("fused", &P::fused, "attention is one kernel (FlashAttention)");
}

const Registration<ModelKind> kBert{
    "bert", "a bidirectional encoder that predicts masked tokens; the default is BERT-large",
    bert_parameters(),
    [](const BertModel& p, const ConfigNode& where) { return std::make_unique<Bert>(p, where); }};

}  // namespace
}  // namespace netsim
