// vgg: convolutions of 3 x 3 one after the other, and three fully connected layers (Simonyan & Zisserman,
// arXiv 1409.1556), as in torchvision. The body's layers are its convolutions, with the pooling behind them,
// and the first two connected layers, which have nine tenths of the parameters. A microbatch counts images.
#include <array>
#include <memory>
#include <utility>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/training/model/convolutions.h"

namespace netsim {
namespace {

enum class VggDepth : std::uint8_t { d11, d13, d16, d19 };

// Convolutions of the five stages (Simonyan & Zisserman, table 1, columns A, B, D, E).
constexpr std::array<std::array<std::int64_t, 5>, 4> kConvolutions{
    {{1, 1, 2, 2, 2}, {2, 2, 2, 2, 2}, {2, 2, 3, 3, 3}, {2, 2, 4, 4, 4}}};
constexpr std::array<std::int64_t, 5> kChannels{64, 128, 256, 512, 512};

struct VggModel {
  VggDepth depth = VggDepth::d16;
  std::int64_t image = 224, classes = 1000;

  const std::array<std::int64_t, 5>& convolutions() const {
    return kConvolutions[static_cast<std::size_t>(depth)];
  }
};

class Vgg final : public ConvolutionalKind {
 public:
  Vgg(const VggModel& model, const ConfigNode& where) : m_(model) {
    if (m_.image % 32 == 0) return;
    entry_or_self(where, "image")
        .fail("an image of " + std::to_string(m_.image) +
              " pixels cannot be halved five times; allowed: a multiple of 32");
  }

  // The first layer reads the images: it is their first convolution.
  Model make(std::int64_t microbatch, std::int64_t gradient_bytes) const override {
    Model model;
    ImageShape shape{microbatch, m_.image, 3};
    for (std::size_t stage = 0; stage < 5; ++stage) {
      const std::int64_t convolutions = m_.convolutions()[stage];
      for (std::int64_t i = 0; i < convolutions; ++i) {
        const bool first = stage == 0 && i == 0;
        ConvolutionChain chain(shape, gradient_bytes, !first);
        chain.convolution("convolution_3x3", kChannels[stage], 3, 1, 1, true);
        chain.activation();
        if (i + 1 == convolutions) chain.max_pool(2, 2, 0);
        shape = chain.shape();
        if (first) {
          model.first = chain.layer("first_convolution");
          model.boundary = shape.tensor();
        } else {
          add(model, chain.layer("convolution"));
        }
      }
    }
    for (int i = 0; i < 2; ++i) {
      ConvolutionChain chain(shape, gradient_bytes);
      chain.connected("connected_gemm", 4096, true);
      shape = chain.shape();
      add(model, chain.layer("connected"));
    }
    ConvolutionChain end(shape, gradient_bytes);
    end.connected("classifier_gemm", m_.classes, false);
    end.loss();
    model.last = end.layer("classifier");
    model.gradient_bytes = gradient_bytes;
    return model;
  }
  std::int64_t layers() const override {
    std::int64_t layers = 2 - 1;  // the first convolution is not in the body
    for (const std::int64_t of_stage : m_.convolutions()) layers += of_stage;
    return layers;
  }

 private:
  static void add(Model& model, ModelLayer layer) {
    model.body.push_back(static_cast<std::uint32_t>(model.kinds.size()));
    model.kinds.push_back(std::move(layer));
  }

  VggModel m_;
};

Parameters<VggModel> vgg_parameters() {
  using P = VggModel;
  return Parameters<P>()
      .choice("depth", &P::depth,
              {{"11", VggDepth::d11}, {"13", VggDepth::d13}, {"16", VggDepth::d16}, {"19", VggDepth::d19}},
              "layers with parameters")
      .integer("image", &P::image, {32, 16'384}, "height and width of an image in pixels")
      .integer("classes", &P::classes, {1, 10'000'000}, "classes of images");
}

const Registration<ModelKind> kVgg{
    "vgg", "a convolutional network with large connected layers; the default is VGG-16", vgg_parameters(),
    [](const VggModel& p, const ConfigNode& where) { return std::make_unique<Vgg>(p, where); }};

}  // namespace
}  // namespace netsim
