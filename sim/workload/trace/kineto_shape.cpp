#include "sim/workload/trace/kineto_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "sim/core/text.h"
#include "sim/core/units.h"
#include "sim/workload/program/program.h"

namespace netsim {
namespace {

using Dims = std::vector<std::int64_t>;

bool has_word(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// Returns the bytes of an element of a tensor: "c10::BFloat16", "float". 0 for scalars and unknown types.
std::int64_t bytes_of_type(std::string_view type) {
  if (has_word(type, {"Float8", "Float4", "char", "bool"})) return 1;
  if (has_word(type, {"BFloat16", "Half", "short"})) return 2;
  if (has_word(type, {"double", "long"})) return 8;
  return has_word(type, {"float", "int"}) ? 4 : 0;
}
Precision precision_of_type(std::string_view type, std::string_view kernel) {
  if (has_word(type, {"Float4"})) return Precision::fp4;
  if (has_word(type, {"Float8"})) return Precision::fp8;
  if (has_word(type, {"BFloat16", "Half"})) return Precision::half;
  return has_word(kernel, {"tf32"}) ? Precision::tf32 : Precision::fp32;
}

// ShapedOperator: the inputs of an operator that multiplies.
struct ShapedOperator {
  std::string_view name;
  std::size_t first;        // index of its first matrix
  bool transposed = false;  // the second matrix is n x k
};
constexpr std::array kProducts{
    ShapedOperator{"aten::mm", 0},           ShapedOperator{"aten::addmm", 1},
    ShapedOperator{"aten::bmm", 0},          ShapedOperator{"aten::baddbmm", 1},
    ShapedOperator{"aten::linear", 0, true}, ShapedOperator{"aten::_scaled_mm", 0}};

// HeadsAt: the place of the heads among the sides of queries and keys, [batch, tokens, heads, size] or
// [batch, heads, tokens, size]. The places are those of PyTorch's transformers/cuda/attention.cu and of
// flash-attention's flash_attn_interface.py.
enum class HeadsAt : std::uint8_t { second, third };
std::optional<HeadsAt> heads_of(std::string_view operation) {
  if (has_word(operation, {"scaled_dot_product", "_cudnn_attention"})) return HeadsAt::second;
  if (has_word(operation, {"_flash_attention", "_efficient_attention", "flash_attn", "FlashAttn"}))
    return HeadsAt::third;
  return std::nullopt;
}

// KernelByShape: makes the kernel.
class KernelByShape {
 public:
  KernelByShape(const std::string& kernel, const KinetoShape& shape)
      : name_(kernel), lower_(lower_case(kernel)), shape_(shape) {}

  std::optional<Kernel> make() const {
    std::optional<Kernel> kernel;
    if (has_word(lower_, {"flash", "fmha", "attention"})) {
      kernel = attention();
    } else if (has_word(lower_, {"elementwise", "reduce_kernel", "norm_kernel", "softmax", "layernorm"})) {
      kernel = memory();
    } else if (has_word(lower_, {"gemm", "nvjet", "cutlass", "xmma", "cijk_"})) {
      kernel = product();
    }
    if (!kernel) return kernel;
    kernel->name = name_;
    const bool has_sides = kernel->kind == Kernel::Kind::memory ||
                           std::min({kernel->m, kernel->n, kernel->k, kernel->batch}) > 0;
    const bool has_bytes = kernel->kind == Kernel::Kind::gemm || kernel->bytes > 0;
    return has_sides && has_bytes && is_allowed_size(*kernel) ? kernel : std::nullopt;
  }

 private:
  std::string_view type(std::size_t input) const {
    return input < shape_.types.size() ? std::string_view(shape_.types[input]) : std::string_view();
  }
  // Returns the elements of a tensor, or nothing for sides that no tensor has.
  static std::optional<std::int64_t> elements(const Dims& dims) {
    Int128 all = 1;
    for (const std::int64_t side : dims) {
      all *= side;
      if (side < 0 || all > ProgramLimits::kBytes) return std::nullopt;
    }
    return static_cast<std::int64_t>(all);
  }

  std::optional<Kernel> product() const {
    const auto op = std::find_if(kProducts.begin(), kProducts.end(),
                                 [&](const ShapedOperator& one) { return one.name == shape_.operation; });
    if (op == kProducts.end() || shape_.dims.size() < op->first + 2) return std::nullopt;
    const Dims &a = shape_.dims[op->first], &b = shape_.dims[op->first + 1];
    if (a.size() < 2 || b.size() < 2) return std::nullopt;
    Kernel kernel;
    kernel.kind = Kernel::Kind::gemm;
    const std::size_t last = b.size() - 1;
    kernel.k = a.back();
    kernel.n = b[op->transposed ? last - 1 : last];
    if (b[op->transposed ? last : last - 1] != kernel.k) return std::nullopt;
    // With a batch the second operand has one matrix for each of the first one's.
    const bool batched = b.size() == 3 && a.size() == 3;
    const auto rows = elements(Dims(a.begin() + (batched ? 1 : 0), a.end() - 1));
    if (!rows || (b.size() > 2 && !batched)) return std::nullopt;
    kernel.m = *rows;
    kernel.batch = batched ? a.front() : 1;
    kernel.precision = precision_of_type(type(op->first), lower_);
    kernel.element_bytes = std::max<std::int64_t>(bytes_of_type(type(op->first)), 1);
    // Products of 8-bit operands have 16-bit results.
    if (kernel.element_bytes == 1) kernel.element_bytes = 2;
    return kernel;
  }

  // Returns whether sequences of several lengths follow each other as one. _efficient_attention has their
  // begins behind the bias, and its backward pass behind the result.
  bool is_packed(bool backward) const {
    const std::size_t begins = backward ? 6 : 4;
    return has_word(shape_.operation, {"_efficient_attention"}) && begins < shape_.dims.size() &&
           !shape_.dims[begins].empty();
  }

  // Queries, keys and values are the first three inputs, or those behind the gradient of the result.
  std::optional<Kernel> attention() const {
    const bool backward = has_word(shape_.operation, {"backward"});
    const std::size_t first = backward ? 1 : 0;
    const auto heads = heads_of(shape_.operation);
    if (!heads || shape_.dims.size() < first + 3) return std::nullopt;
    if (*heads == HeadsAt::third && is_packed(backward)) return std::nullopt;
    const Dims &query = shape_.dims[first], &key = shape_.dims[first + 1];
    if (query.size() != 4 || key.size() != 4) return std::nullopt;
    const std::size_t head = *heads == HeadsAt::second ? 1 : 2, token = 3 - head;
    const auto queries = elements(query), keys = elements(key);
    if (!queries || !keys) return std::nullopt;
    Kernel kernel;
    kernel.kind = Kernel::Kind::attention;
    kernel.backward = backward;
    kernel.m = query[token];
    kernel.n = key[token];
    kernel.k = query[3] * (backward ? 5 : 2);
    kernel.batch = query[0] * query[head];
    kernel.precision = precision_of_type(type(first), lower_);
    kernel.element_bytes = std::max<std::int64_t>(bytes_of_type(type(first)), 1);
    // Queries and results, keys and values; the backward pass also loads gradients and stores those of all.
    kernel.bytes = (2 * *queries + 2 * *keys) * kernel.element_bytes * (backward ? 2 : 1);
    return kernel;
  }

  std::optional<Kernel> memory() const {
    Kernel kernel;
    kernel.kind = Kernel::Kind::memory;
    Int128 bytes = 0, largest = 0;
    for (std::size_t i = 0; i < shape_.dims.size(); ++i) {
      if (shape_.dims[i].empty()) continue;
      const auto count = elements(shape_.dims[i]);
      if (!count) return std::nullopt;
      const Int128 input = static_cast<Int128>(*count) * bytes_of_type(type(i));
      bytes += input;
      largest = std::max(largest, input);
    }
    bytes += largest;
    if (bytes < 1 || bytes > ProgramLimits::kBytes) return std::nullopt;
    kernel.bytes = static_cast<Bytes>(bytes);
    return kernel;
  }

  const std::string& name_;
  std::string lower_;
  const KinetoShape& shape_;
};

}  // namespace

std::string KinetoShape::text() const {
  constexpr std::size_t kInputs = 6;
  std::string inputs;
  for (std::size_t i = 0; i < std::min(dims.size(), kInputs); ++i) {
    std::string sides;
    for (const std::int64_t side : dims[i]) append_item(sides, std::to_string(side));
    append_item(inputs, "[" + sides + "]");
  }
  if (dims.size() > kInputs) append_item(inputs, "...");
  return fmt::format("{}({})", printable(operation), inputs);
}

std::optional<Kernel> kineto_kernel(const std::string& kernel, const KinetoShape& shape) {
  return KernelByShape(kernel, shape).make();
}

}  // namespace netsim
