#include "sim/training/model/convolutions.h"

#include <algorithm>
#include <utility>

namespace netsim {
namespace {

Operator multiplication(const std::string& name, Extent m, Extent n, Extent k, std::vector<Traffic> traffic) {
  Operator op = gemm(name.c_str(), m, n, k);
  op.traffic = std::move(traffic);
  return op;
}

}  // namespace

void ConvolutionChain::before(std::vector<Operator> operators) {
  backward_.insert(backward_.begin(), operators.begin(), operators.end());
}

void ConvolutionChain::weight_gradient(const std::string& name, std::int64_t m, std::int64_t n,
                                       std::int64_t k, std::vector<Traffic> traffic) {
  const std::int64_t pieces = std::max<std::int64_t>(1, k / kSplit);
  const Tensor weights{{m}, {n}};
  if (pieces > 1) traffic.push_back({4, {{pieces}, {m}, {n}}});
  traffic.push_back({2, weights});
  Operator op = multiplication(name + "_wgrad", {m}, {n}, {(k + pieces - 1) / pieces}, std::move(traffic));
  op.batch = {pieces};
  std::vector<Operator> operators{computing_weights(std::move(op))};
  if (pieces > 1) {
    operators.push_back(
        computing_weights(memory_bound("wgrad_sum", {{4, {{pieces}, {m}, {n}}}, {2, weights}})));
  }
  operators.push_back(accumulation({weights}, gradient_bytes_));
  before(std::move(operators));
}

void ConvolutionChain::convolution(const std::string& name, std::int64_t channels, std::int64_t kernel,
                                   std::int64_t stride, std::int64_t padding, bool bias) {
  const ImageShape input = shape_;
  const ImageShape output{input.images, output_size(input.size, kernel, stride, padding), channels};
  const std::int64_t pixels = output.images * output.size * output.size, window = kernel * kernel;
  const Tensor kernels{{input.channels * window}, {channels}};
  forward_.push_back(multiplication(name, {pixels}, {channels}, {input.channels * window},
                                    {{2, input.tensor()}, {2, kernels}, {2, output.tensor()}}));
  weight_gradient(name, input.channels * window, channels, pixels,
                  {{2, input.tensor()}, {2, output.tensor()}});
  // Gradients of inputs come first, so that a split backward has them together with the operators that wait
  // for them.
  if (input_gradient_) {
    const std::vector<Traffic> traffic{{2, output.tensor()}, {2, kernels}, {2, input.tensor()}};
    before({stride == 1
                ? multiplication(name + "_dgrad", {input.images * input.size * input.size}, {input.channels},
                                 {channels * window}, traffic)
                : multiplication(name + "_dgrad", {pixels}, {input.channels * window}, {channels}, traffic)});
  }
  if (bias) before({computing_weights(memory_bound("bias_gradient", 2, output.tensor()))});
  parameters_.push_back(kernels);
  if (bias) parameters_.push_back({{channels}});
  shape_ = output;
  input_gradient_ = true;
}

void ConvolutionChain::batch_norm() {
  forward_.push_back(memory_bound("batch_norm", 6, shape_.tensor()));
  before({memory_bound("batch_norm_backward", 10, shape_.tensor())});
  parameters_.push_back({{2}, {shape_.channels}});
}

void ConvolutionChain::activation() {
  forward_.push_back(memory_bound("relu", 4, shape_.tensor()));
  before({memory_bound("relu_backward", 6, shape_.tensor())});
}

void ConvolutionChain::max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  const ImageShape input = shape_;
  shape_.size = output_size(input.size, kernel, stride, padding);
  forward_.push_back(memory_bound("max_pool", {{2, input.tensor()}, {2, shape_.tensor()}}));
  before({memory_bound("max_pool_backward", {{3, shape_.tensor()}, {2, input.tensor()}})});
}

void ConvolutionChain::average_pool() {
  const ImageShape input = shape_;
  shape_.size = 1;
  forward_.push_back(memory_bound("average_pool", {{2, input.tensor()}, {2, shape_.tensor()}}));
  before({memory_bound("average_pool_backward", {{2, shape_.tensor()}, {2, input.tensor()}})});
}

void ConvolutionChain::connected(const std::string& name, std::int64_t outputs, bool with_activation) {
  const std::int64_t inputs = shape_.size * shape_.size * shape_.channels;
  const Extent images{shape_.images};
  shape_ = {shape_.images, 1, outputs};
  forward_.push_back(gemm(name.c_str(), images, {outputs}, {inputs}));
  parameters_.push_back({{inputs}, {outputs}});
  parameters_.push_back({{outputs}});
  before({gemm((name + "_dgrad").c_str(), images, {inputs}, {outputs}),
          computing_weights(gemm((name + "_wgrad").c_str(), {inputs}, {outputs}, images)),
          accumulation({{{inputs}, {outputs}}}, gradient_bytes_)});
  if (!with_activation) return;
  forward_.push_back(memory_bound("bias_relu_dropout", 5, shape_.tensor()));
  before({memory_bound("bias_relu_dropout_backward", 9, shape_.tensor())});
}

void ConvolutionChain::add_residual(const ImageShape& input) {
  forward_.push_back(memory_bound("residual_relu", 6, shape_.tensor()));
  before({memory_bound("residual_relu_backward", 6, shape_.tensor())});
  backward_.push_back(memory_bound("residual_gradient_sum", 6, input.tensor()));
}

void ConvolutionChain::join(const ConvolutionChain& other) {
  forward_.insert(forward_.end(), other.forward_.begin(), other.forward_.end());
  before(other.backward_);
  parameters_.insert(parameters_.end(), other.parameters_.begin(), other.parameters_.end());
}

void ConvolutionChain::loss() {
  forward_.push_back(memory_bound("softmax_loss", 6, shape_.tensor()));
  before({memory_bound("softmax_loss_backward", 6, shape_.tensor())});
}

ModelLayer ConvolutionChain::layer(const std::string& name) const {
  ModelLayer made{name,
                  {{name + "_forward", forward_, {}}},
                  {{name + "_backward", backward_, {}}},
                  parameters_,
                  shape_.tensor()};
  return made;
}

std::string ConvolutionalKind::resize(std::optional<std::int64_t>, std::optional<std::int64_t>) {
  return "a convolutional network has the layers that its depth says, and no sequence";
}

std::string ConvolutionalKind::refuse(Division division) const {
  if (division == Division::tensor)
    return "a convolutional network has neither heads nor an MLP that tensor parallelism divides";
  return division == Division::context ? "a convolutional network has no sequence" : std::string();
}

}  // namespace netsim
