// Convolutional layers, operator by operator. Convolutions are the GEMMs of their patches (im2col). Batch
// norms, activations and pooling are memory-bound. Activations are in half precision.
//
// A convolution of b images with C channels to K channels has kernels of r x r and an output of P x P. It is
// a GEMM of (b P^2 x C r^2)(C r^2 x K). cuDNN's implicit GEMM (Chetlur et al., arXiv 1410.0759) never writes
// the matrix of patches. So the memory traffic is the image, the kernels and the output, each once.
//
// Backward with stride 1, the gradient of the image is the convolution of the output's gradient: (b P^2 x K
// r^2)(K r^2 x C). With another stride it is the gradient of the patches, (b P^2 x K)(K x C r^2), which is
// summed up.
//
// The gradient of the kernels is (C r^2 x b P^2)(b P^2 x K). Its long sum is cut into pieces of about kSplit,
// each with a thread block of its own for every tile, as in split-K kernels. The pieces are summed up in
// fp32. The value of kSplit is a choice of netsim: a piece is about thirty times as long as what fills a
// tile's pipeline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/training/model/model_kind.h"
#include "sim/training/model/operators.h"

namespace netsim {

// ImageShape: images of equal height and width, `size`.
struct ImageShape {
  std::int64_t images = 1, size = 0, channels = 0;
  Tensor tensor() const { return {{images}, {size}, {size}, {channels}}; }
};

// ConvolutionChain: a growing chain of operators. Forward operators are appended, backward operators are put
// before the present ones.
class ConvolutionChain {
 public:
  static constexpr std::int64_t kSplit = 4096;

  // `input_gradient` says whether the gradient of the input is needed; that of the images is not.
  ConvolutionChain(ImageShape input, std::int64_t gradient_bytes, bool input_gradient = true)
      : shape_(input), gradient_bytes_(gradient_bytes), input_gradient_(input_gradient) {}

  void convolution(const std::string& name, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                   std::int64_t padding, bool bias);
  // Adds a batch norm, with an activation or without, in one kernel. The statistics read 2 bytes; normalising
  // reads 2 and writes 2. Backward, gradient and input are read for the statistics (4) and again for the
  // result (4), which writes 2.
  void batch_norm();
  // Adds a ReLU, which reads 2 and writes 2. Backward reads gradient and output and writes 2.
  void activation();
  // Adds the maximum over windows, which reads 2 of the input and writes 2 of the output. Backward reads the
  // output's gradient and the positions of the maxima (2 + 1) and writes 2 of the input.
  void max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding);
  // Adds the average over the whole image, which reads 2 of it.
  void average_pool();
  // Adds a fully connected layer of the whole shape.
  void connected(const std::string& name, std::int64_t outputs, bool with_activation);
  // Adds the sum with the input of a block, or with its shortcut's output, and a ReLU: reads 4, writes 2.
  // Backward the ReLU reads 4 and writes 2. The two gradients of the block's input are summed up (read 4,
  // write 2).
  void add_residual(const ImageShape& input);
  // Adds the operators of another chain, such as a shortcut's.
  void join(const ConvolutionChain& other);
  // Adds the softmax cross entropy of the present outputs as classes.
  void loss();

  const ImageShape& shape() const { return shape_; }
  ModelLayer layer(const std::string& name) const;

 private:
  static std::int64_t output_size(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                                  std::int64_t padding) {
    return (size + 2 * padding - kernel) / stride + 1;
  }
  void before(std::vector<Operator> operators);  // adds backward operators
  void weight_gradient(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k,
                       std::vector<Traffic> traffic);

  ImageShape shape_;
  std::int64_t gradient_bytes_;
  bool input_gradient_;
  std::vector<Operator> forward_, backward_;
  std::vector<Tensor> parameters_;
};

// ConvolutionalKind: the common part of convolutional networks. Their depth gives their layers. They have no
// sequence, and no heads or MLP that could be divided.
class ConvolutionalKind : public ModelKind {
 public:
  std::int64_t sequence() const override { return 1; }
  std::vector<std::pair<std::string, std::int64_t>> divided() const override { return {}; }
  std::string resize(std::optional<std::int64_t> layers, std::optional<std::int64_t> sequence) override;
  std::string refuse(Division division) const override;
};

}  // namespace netsim
