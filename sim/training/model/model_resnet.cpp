// resnet: a residual network for images (He et al., arXiv 1512.03385), as in torchvision. It is version 1.5,
// whose bottlenecks have their stride in the convolution of 3 x 3. The body's layers are its blocks. A
// microbatch counts images.
#include <array>
#include <memory>
#include <utility>

#include "sim/core/registry.h"
#include "sim/training/model/convolutions.h"

namespace netsim {
namespace {

enum class ResnetDepth : std::uint8_t { d18, d34, d50, d101, d152 };

// Blocks: the blocks of the four stages (He et al., table 1).
struct Blocks {
  std::array<std::int64_t, 4> of_stage;
  bool bottleneck;
};
constexpr std::array<Blocks, 5> kBlocks{{{{2, 2, 2, 2}, false},
                                         {{3, 4, 6, 3}, false},
                                         {{3, 4, 6, 3}, true},
                                         {{3, 4, 23, 3}, true},
                                         {{3, 8, 36, 3}, true}}};

struct ResNetModel {
  ResnetDepth depth = ResnetDepth::d50;
  std::int64_t image = 224, classes = 1000;

  const Blocks& blocks() const { return kBlocks[static_cast<std::size_t>(depth)]; }
};

class ResNet final : public ConvolutionalKind {
 public:
  explicit ResNet(const ResNetModel& model) : m_(model) {}

  Model make(std::int64_t microbatch, std::int64_t gradient_bytes) const override {
    Model model;
    ConvolutionChain stem({microbatch, m_.image, 3}, gradient_bytes, false);
    stem.convolution("convolution_7x7", 64, 7, 2, 3, false);
    stem.batch_norm();
    stem.max_pool(3, 2, 1);
    model.first = stem.layer("stem");
    model.boundary = stem.shape().tensor();
    ImageShape shape = stem.shape();
    for (std::size_t stage = 0; stage < 4; ++stage) {
      // The first block of a stage differs from the others, which are all alike.
      for (std::int64_t block = 0; block < m_.blocks().of_stage[stage]; ++block) {
        const std::int64_t stride = block == 0 && stage > 0 ? 2 : 1;
        if (block < 2)
          model.kinds.push_back(residual_block(shape, std::int64_t{64} << stage, stride, gradient_bytes));
        model.body.push_back(static_cast<std::uint32_t>(model.kinds.size()) - 1);
      }
    }
    ConvolutionChain end(shape, gradient_bytes);
    end.average_pool();
    end.connected("classifier_gemm", m_.classes, false);
    end.loss();
    model.last = end.layer("classifier");
    model.gradient_bytes = gradient_bytes;
    return model;
  }
  std::int64_t layers() const override {
    std::int64_t blocks = 0;
    for (const std::int64_t of_stage : m_.blocks().of_stage) blocks += of_stage;
    return blocks;
  }

 private:
  // Returns a block and sets `shape` to its output.
  ModelLayer residual_block(ImageShape& shape, std::int64_t width, std::int64_t stride,
                            std::int64_t gradient_bytes) const {
    const bool bottleneck = m_.blocks().bottleneck;
    const std::int64_t outputs = bottleneck ? 4 * width : width;
    ConvolutionChain chain(shape, gradient_bytes);
    if (bottleneck) {
      chain.convolution("convolution_1x1", width, 1, 1, 0, false);
      chain.batch_norm();
    }
    chain.convolution("convolution_3x3", width, 3, stride, 1, false);
    chain.batch_norm();
    chain.convolution(bottleneck ? "convolution_1x1" : "convolution_3x3", outputs, bottleneck ? 1 : 3, 1,
                      bottleneck ? 0 : 1, false);
    chain.batch_norm();
    if (stride > 1 || shape.channels != outputs) {
      ConvolutionChain shortcut(shape, gradient_bytes);
      shortcut.convolution("shortcut_1x1", outputs, 1, stride, 0, false);
      shortcut.batch_norm();
      chain.join(shortcut);
    }
    chain.add_residual(shape);
    shape = chain.shape();
    return chain.layer("block");
  }

  ResNetModel m_;
};

Parameters<ResNetModel> resnet_parameters() {
  using P = ResNetModel;
  return Parameters<P>()
      .choice("depth", &P::depth,
              {{"18", ResnetDepth::d18},
               {"34", ResnetDepth::d34},
               {"50", ResnetDepth::d50},
               {"101", ResnetDepth::d101},
               {"152", ResnetDepth::d152}},
              "layers with parameters; from 50 on the blocks are bottlenecks")
      .integer("image", &P::image, {32, 16'384}, "height and width of an image in pixels")
      .integer("classes", &P::classes, {1, 10'000'000}, "classes of images");
}

const Registration<ModelKind> kResnet{
    "resnet", "a residual convolutional network; the default is ResNet-50", resnet_parameters(),
    [](const ResNetModel& p, const ConfigNode&) { return std::make_unique<ResNet>(p); }};

}  // namespace
}  // namespace netsim
