// t5: an encoder and a decoder that attends to the encoder's output (Raffel et al., arXiv 1910.10683). It has
// norms without biases and relative positions added to the scores. The sizes of heads need not add up to the
// hidden one.
//
// Layers of the encoder come first in the body, those of the decoder behind them. Both sequences' embeddings
// are looked up in the first layer, and both sequences go from layer to layer. So the tokens of both travel
// between the stages of a pipeline: the decoder's embeddings through the encoder, and the encoder's output
// through the decoder. A model that is a plain list of layers passes its tensors on in this way. Bytes of
// embedding, logits and loss are as in transformer.cpp.
#include <algorithm>
#include <memory>
#include <utility>

#include "sim/core/registry.h"
#include "sim/training/model/model_kind.h"
#include "sim/training/model/sublayers.h"

namespace netsim {
namespace {

struct T5Model {
  std::int64_t layers = 24, hidden = 1024, heads = 128, head_size = 128, inner = 65536;
  std::int64_t sequence = 512, target = 114, vocabulary = 32128, buckets = 32;
};

class T5Maker {
 public:
  T5Maker(const T5Model& m, std::int64_t microbatch, std::int64_t gradient_bytes)
      : m_(m),
        gradient_bytes_(gradient_bytes),
        encoder_(shape(m, microbatch, gradient_bytes, m.sequence, m.sequence)),
        decoder_(shape(m, microbatch, gradient_bytes, m.target, m.target)),
        cross_(shape(m, microbatch, gradient_bytes, m.target, m.sequence)),
        hidden_{m.hidden},
        both_{(m.sequence + m.target) * microbatch, Dimension::tokens},
        targets_{m.target * microbatch, Dimension::tokens},
        vocabulary_{m.vocabulary, Dimension::vocabulary} {}

  Model make() const {
    Model model;
    model.first = embedding();
    const ModelLayer encoder = encoder_.layer("encoder_layer", {encoder_.attention(), encoder_.mlp()});
    model.kinds = {
        encoder, with_norm(encoder),
        decoder_.layer("decoder_layer", {decoder_.attention(), cross_.cross_attention(), decoder_.mlp()})};
    const auto layers = static_cast<std::size_t>(m_.layers);
    model.body.assign(2 * layers, 2);
    std::fill_n(model.body.begin(), layers, 0);
    model.body[layers - 1] = 1;
    model.last = head();
    model.boundary = part();
    model.shared = words();
    model.gradient_bytes = gradient_bytes_;
    return model;
  }

 private:
  static SublayerShape shape(const T5Model& m, std::int64_t microbatch, std::int64_t gradient_bytes,
                             std::int64_t queries, std::int64_t keys) {
    SublayerShape s;
    s.hidden = m.hidden;
    s.heads = m.heads;
    s.head_size = m.head_size;
    s.inner = m.inner;
    s.queries = queries;
    s.keys = keys;
    s.microbatch = microbatch;
    s.gradient_bytes = gradient_bytes;
    s.biases = false;
    s.score_bias = queries == keys;  // relative positions do not refer to another sequence
    s.activation = "relu";
    return s;
  }
  Tensor words() const { return {vocabulary_, hidden_}; }
  Tensor all() const { return {both_, hidden_}; }
  Tensor part() const { return {{both_.size, Dimension::sequence}, hidden_}; }
  Tensor z() const { return {targets_, vocabulary_}; }
  PartialSum loss() const { return {"loss", Dimension::vocabulary, {targets_}, 4}; }

  // Returns the encoder's last layer, with the norm behind it.
  ModelLayer with_norm(ModelLayer layer) const {
    layer.name = "encoder_end_layer";
    layer.forward.back().operators.push_back(encoder_.norm_forward());
    std::vector<Operator>& first = layer.backward.front().operators;
    first.insert(first.begin(), encoder_.norm_backward());
    layer.parameters.push_back(encoder_.norm_parameters().front());
    return layer;
  }

  ModelLayer embedding() const {
    const Extent buckets{m_.buckets}, heads{m_.heads, Dimension::heads};
    return {"embedding",
            {{"embedding_lookup",
              {memory_bound("embedding_gather", 6, all())},
              PartialSum{"embedding", Dimension::vocabulary, all(), 2, true}},
             {"embedding_end", {memory_bound("embedding_dropout", 5, part())}, {}}},
            {{"embedding_backward",
              {memory_bound("embedding_dropout_backward", 5, part()),
               gathering({all()},
                         computing_weights(memory_bound("embedding_gradient", {{2, words()}, {6, all()}}))),
               accumulation({words()}, gradient_bytes_)},
              {}}},
            {{buckets, heads}, {buckets, heads}}};  // relative positions, one set for each stack
  }
  ModelLayer head() const {
    const Tensor rows = decoder_.all();
    return {
        "head",
        {{"logits_forward",
          {decoder_.norm_forward(), gathering({rows}, gemm("logits_gemm", targets_, vocabulary_, hidden_)),
           memory_bound("logits_to_fp32", 6, z()), memory_bound("logits_maximum", 4, z())},
          loss()},
         {"loss_predicted", {memory_bound("logits_subtract_maximum", 8, z())}, loss()},
         {"loss_sum",
          {memory_bound("logits_exponential", 8, z()), memory_bound("logits_sum", 4, z())},
          loss()},
         {"loss_end", {memory_bound("softmax_normalise", 8, z())}, {}}},
        {{"logits_backward",
          {memory_bound("loss_backward", 8, z()), memory_bound("logits_to_bf16", 6, z()),
           gemm("logits_gemm_dgrad", targets_, hidden_, vocabulary_),
           gathering({rows, true},
                     computing_weights(gemm("logits_gemm_wgrad", hidden_, vocabulary_, targets_))),
           accumulation({words()}, gradient_bytes_)},
          PartialSum{"logits_backward", Dimension::vocabulary, rows, 2, true}},
         {"final_norm_backward", {decoder_.norm_backward()}, {}}},
        decoder_.norm_parameters()};
  }

  T5Model m_;
  std::int64_t gradient_bytes_;
  Sublayers encoder_, decoder_, cross_;
  Extent hidden_, both_, targets_, vocabulary_;
};

class T5 final : public ModelKind {
 public:
  T5(const T5Model& model, const ConfigNode&) : m_(model) {}

  Model make(std::int64_t microbatch, std::int64_t gradient_bytes) const override {
    return T5Maker(m_, microbatch, gradient_bytes).make();
  }
  std::int64_t layers() const override { return 2 * m_.layers; }
  std::int64_t sequence() const override { return m_.sequence; }
  std::vector<std::pair<std::string, std::int64_t>> sequences() const override {
    return {{"sequence", m_.sequence}, {"target", m_.target}};
  }
  std::vector<std::pair<std::string, std::int64_t>> divided() const override {
    return {{"heads", m_.heads}, {"inner", m_.inner}, {"vocabulary", m_.vocabulary}};
  }
  // `layers` is the number of each of the two stacks.
  std::string resize(std::optional<std::int64_t> layers, std::optional<std::int64_t> sequence) override {
    m_.layers = layers.value_or(m_.layers);
    m_.sequence = sequence.value_or(m_.sequence);
    return {};
  }
  std::string refuse(Division division) const override {
    return division == Division::context ? "context parallelism is for decoders: an encoder's and a "
                                           "decoder's tokens are of two sequences"
                                         : std::string();
  }

 private:
  T5Model m_;
};

Parameters<T5Model> t5_parameters() {
  using P = T5Model;
  return Parameters<P>()
      .integer("layers", &P::layers, {1, 50'000}, "layers of the encoder, and as many of the decoder")
      .integer("hidden", &P::hidden, {1, 1'000'000}, "hidden size (d_model)")
      .integer("heads", &P::heads, {1, 1'000'000}, "attention heads")
      .integer("head_size", &P::head_size, {1, 1'000'000}, "size of a head (d_kv)")
      .integer("inner", &P::inner, {1, 10'000'000}, "inner size of the MLP (d_ff)")
      .integer("sequence", &P::sequence, {1, 1'000'000}, "tokens that the encoder reads")
      .integer("target", &P::target, {1, 1'000'000}, "tokens that the decoder predicts")
      .integer("vocabulary", &P::vocabulary, {1, 10'000'000}, "vocabulary size, padded")
      .integer("buckets", &P::buckets, {1, 1'000'000}, "buckets of relative positions");
}

const Registration<ModelKind> kT5{
    "t5", "an encoder and a decoder with cross attention; the default is T5-11B", t5_parameters(),
    [](const T5Model& p, const ConfigNode& where) { return std::make_unique<T5>(p, where); }};

}  // namespace
}  // namespace netsim
