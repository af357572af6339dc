// Convolutional layers, operator by operator: convolutions as the GEMMs of their patches (im2col), batch
// norms, activations and pooling bound by memory. Activations in half precision.
//
// A convolution of an image of C channels to K, with kernels of r x r and an output of P x P, is for b images
// a GEMM of (b P^2 x C r^2)(C r^2 x K). cuDNN's implicit GEMM (Chetlur et al., arXiv 1410.0759) never writes
// the matrix of patches, so what goes through the memory is the image, the kernels and the output, each once.
// Backward, the gradient of the image is the convolution of the output's gradient: (b P^2 x K r^2)(K r^2 x C)
// where the stride is 1, else the gradient of the patches, (b P^2 x K)(K x C r^2), which is summed up. That
// of the kernels is (C r^2 x b P^2)(b P^2 x K), whose long sum is cut into pieces of about kSplit, each a
// thread block of its own for every tile, as split-K kernels do; the pieces are summed up in fp32. kSplit is
// ours: a piece is then some thirty times as long as what fills the pipeline of a tile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/training/model/model_kind.h"
#include "sim/training/model/operators.h"

namespace netsim {

// Of so many images; height and width are the same.
struct ImageShape {
  std::int64_t images = 1, size = 0, channels = 0;
  Tensor tensor() const { return {{images}, {size}, {size}, {channels}}; }
};

// A chain of operators that grows: forward in order, backward before what is there.
class ConvolutionChain {
 public:
  static constexpr std::int64_t kSplit = 4096;

  // `input_gradient`: somebody before it needs the gradient of the input (nobody needs that of the images).
  ConvolutionChain(ImageShape input, std::int64_t gradient_bytes, bool input_gradient = true)
      : shape_(input), gradient_bytes_(gradient_bytes), input_gradient_(input_gradient) {}

  void convolution(const std::string& name, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                   std::int64_t padding, bool bias);
  // Batch norm with an activation or without, in one kernel: statistics read 2; normalising reads 2,
  // writes 2. Backward: gradient and input are read for the statistics (4) and again for the result (4),
  // which writes 2.
  void batch_norm();
  void activation();  // ReLU: read 2, write 2; backward reads gradient and output, writes 2
  // Maximum over windows; reads 2 of the input, writes 2 of the output. Backward reads the output's gradient
  // and where it came from (2 + 1), and writes 2 of the input.
  void max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding);
  void average_pool();  // over the whole image: read 2 of it
  // A fully connected layer of all there is.
  void connected(const std::string& name, std::int64_t outputs, bool with_activation);
  // The sum with the input of a block, or what a shortcut has made of it, and ReLU: reads 4, writes 2;
  // backward the ReLU reads 4, writes 2, and the two gradients of the block's input are summed up (read 4,
  // write 2).
  void add_residual(const ImageShape& input);
  // The operators of another chain, such as a shortcut's.
  void join(const ConvolutionChain& other);
  // Softmax cross entropy of the classes that are there.
  void loss();

  const ImageShape& shape() const { return shape_; }
  ModelLayer layer(const std::string& name) const;

 private:
  static std::int64_t output_size(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                                  std::int64_t padding) {
    return (size + 2 * padding - kernel) / stride + 1;
  }
  void before(std::vector<Operator> operators);  // backward
  void weight_gradient(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k,
                       std::vector<Traffic> traffic);

  ImageShape shape_;
  std::int64_t gradient_bytes_;
  bool input_gradient_;
  std::vector<Operator> forward_, backward_;
  std::vector<Tensor> parameters_;
};

// What convolutional networks have in common: layers that their depth says, and no sequence; neither heads
// nor an MLP that could be divided.
class ConvolutionalKind : public ModelKind {
 public:
  std::int64_t sequence() const override { return 1; }
  std::vector<std::pair<std::string, std::int64_t>> divided() const override { return {}; }
  std::string resize(std::optional<std::int64_t> layers, std::optional<std::int64_t> sequence) override;
  std::string refuse(Division division) const override;
};

}  // namespace netsim
