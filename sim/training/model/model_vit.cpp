// vit: a vision transformer (Dosovitskiy et al., arXiv 2010.11929). An image is cut into patches, each a
// token, and the class is read from one more token. Layers have a norm before each sublayer, and no dropout.
// A microbatch counts images.
//
// The patches' embedding is a GEMM over their pixels, the same on all ranks of tensor parallelism, as is the
// classifier. Bytes: patches are put in rows (read 2, write 2), class token and positions are added (read 4,
// write 2). The class token is read (read 2, write 2) and its gradient written into zeros.
#include <memory>
#include <utility>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/training/model/model_kind.h"
#include "sim/training/model/sublayers.h"

namespace netsim {
namespace {

struct VitModel {
  std::int64_t layers = 24, hidden = 1024, heads = 16, inner = 4096;
  std::int64_t image = 224, patch = 16, channels = 3, classes = 1000;
  bool fused = true;

  std::int64_t patches() const { return (image / patch) * (image / patch); }
  std::int64_t pixels() const { return patch * patch * channels; }  // pixels of a patch
};

class VitMaker {
 public:
  VitMaker(const VitModel& m, std::int64_t microbatch, std::int64_t gradient_bytes)
      : m_(m),
        gradient_bytes_(gradient_bytes),
        layers_(shape(m, microbatch, gradient_bytes)),
        hidden_{m.hidden},
        images_{microbatch},
        patches_{m.patches() * microbatch, Dimension::tokens},
        pixels_{m.pixels()},
        classes_{m.classes} {}

  Model make() const {
    Model model;
    model.first = embedding();
    model.kinds = {layers_.layer("layer", {layers_.attention(), layers_.mlp()})};
    model.body.assign(static_cast<std::size_t>(m_.layers), 0);
    model.last = head();
    model.boundary = layers_.part();
    model.gradient_bytes = gradient_bytes_;
    return model;
  }

 private:
  static SublayerShape shape(const VitModel& m, std::int64_t microbatch, std::int64_t gradient_bytes) {
    SublayerShape s;
    s.hidden = m.hidden;
    s.heads = m.heads;
    s.head_size = m.hidden / m.heads;
    s.inner = m.inner;
    s.queries = s.keys = m.patches() + 1;
    s.microbatch = microbatch;
    s.gradient_bytes = gradient_bytes;
    s.fused = m.fused;
    s.dropout = false;
    return s;
  }

  ModelLayer embedding() const {
    const Tensor image{patches_, pixels_};
    return {
        "patch_embedding",
        {{"patch_embedding_forward",
          {memory_bound("patches", 4, image), gemm("patch_gemm", patches_, hidden_, pixels_),
           memory_bound("position_embedding", 6, layers_.part())},
          {}}},
        {{"patch_embedding_backward",
          {gathering({layers_.all()},
                     computing_weights(memory_bound("position_gradient", {{2, layers_.all()}}))),
           computing_weights(gemm("patch_gemm_wgrad", pixels_, hidden_, patches_)),
           accumulation({{pixels_, hidden_}}, gradient_bytes_)},
          {}}},
        {{pixels_, hidden_}, {hidden_}, {hidden_}, {{m_.patches() + 1}, hidden_}}};  // with the class token
  }
  ModelLayer head() const {
    const Tensor row{images_, hidden_}, scores{images_, classes_};
    return {
        "classifier",
        {{"classifier_forward",
          {layers_.norm_forward(), memory_bound("class_token", 4, row),
           gemm("classifier_gemm", images_, classes_, hidden_), memory_bound("softmax_loss", 6, scores)},
          {}}},
        {{"classifier_backward",
          {memory_bound("softmax_loss_backward", 6, scores),
           gemm("classifier_gemm_dgrad", images_, hidden_, classes_),
           computing_weights(gemm("classifier_gemm_wgrad", hidden_, classes_, images_)),
           accumulation({{hidden_, classes_}}, gradient_bytes_),
           memory_bound("class_token_backward", {{2, layers_.part()}, {4, row}}), layers_.norm_backward()},
          {}}},
        {layers_.norm_parameters().front(), {hidden_, classes_}, {classes_}}};
  }

  VitModel m_;
  std::int64_t gradient_bytes_;
  Sublayers layers_;
  Extent hidden_, images_, patches_, pixels_, classes_;
};

class Vit final : public ModelKind {
 public:
  Vit(const VitModel& model, const ConfigNode& where) : m_(model) {
    const auto require_divides = [&](const char* what, std::int64_t value, const char* key,
                                     std::int64_t divisor) {
      if (value % divisor == 0) return;
      entry_or_self(where, key)
          .fail(std::string(what) + " (" + std::to_string(value) + ") cannot be divided by " + key + " (" +
                std::to_string(divisor) + ")");
    };
    require_divides("hidden", m_.hidden, "heads", m_.heads);
    require_divides("image", m_.image, "patch", m_.patch);
  }

  Model make(std::int64_t microbatch, std::int64_t gradient_bytes) const override {
    return VitMaker(m_, microbatch, gradient_bytes).make();
  }
  std::int64_t layers() const override { return m_.layers; }
  std::int64_t sequence() const override { return m_.patches() + 1; }
  std::vector<std::pair<std::string, std::int64_t>> divided() const override {
    return {{"heads", m_.heads}, {"inner", m_.inner}};
  }
  std::string resize(std::optional<std::int64_t> layers, std::optional<std::int64_t> sequence) override {
    if (sequence) return "a sequence is an image's patches and one token more: change image or patch instead";
    m_.layers = layers.value_or(m_.layers);
    return {};
  }
  std::string refuse(Division division) const override {
    return division == Division::context ? "context parallelism is for decoders: an image's patches are few"
                                         : std::string();
  }

 private:
  VitModel m_;
};

Parameters<VitModel> vit_parameters() {
  using P = VitModel;
  return Parameters<P>()
      .integer("layers", &P::layers, {1, 100'000}, "encoder layers")
      .integer("hidden", &P::hidden, {1, 1'000'000}, "hidden size")
      .integer("heads", &P::heads, {1, 1'000'000}, "attention heads")
      .integer("inner", &P::inner, {1, 10'000'000}, "inner size of the MLP")
      .integer("image", &P::image, {1, 65'536}, "height and width of an image in pixels")
      .integer("patch", &P::patch, {1, 65'536}, "height and width of a patch")
      .integer("channels", &P::channels, {1, 65'536}, "channels of a pixel")
      .integer("classes", &P::classes, {1, 10'000'000}, "classes of images")
      .flag("fused", &P::fused, "attention is one kernel (FlashAttention)");
}

const Registration<ModelKind> kVit{
    "vit", "a vision transformer; the default is ViT-L/16", vit_parameters(),
    [](const VitModel& p, const ConfigNode& where) { return std::make_unique<Vit>(p, where); }};

}  // namespace
}  // namespace netsim
