// KinetoShape: the shapes with which PyTorch called an operator, and the work of a kernel by them. The
// profiler records them with record_shapes, as "Input Dims" and "Input type".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/compute/kernel.h"

namespace netsim {

struct KinetoShape {
  std::string operation;                        // "aten::addmm"
  std::vector<std::vector<std::int64_t>> dims;  // by input; empty: no tensor, or a list of tensors
  std::vector<std::string> types;               // by input: "c10::BFloat16"
  // Returns the operator with the sides of its first inputs: "aten::mm([64, 32], [32, 16])".
  std::string text() const;
};

// The begin of the note that counts kernels which no shape times.
inline constexpr const char* kUntimedKernels =
    "kernels without a shape that tells their work, which keep their recorded times";

// Returns the work of a kernel that an operator with these shapes has launched. Nothing where the kernel's
// name and the operator do not tell it.
//
// - Products of matrices: kernels with gemm, nvjet, cutlass, xmma or Cijk in their names, of aten::mm, addmm,
//   bmm, baddbmm, linear and _scaled_mm.
// - Fused attention: kernels with flash, fmha or attention in their names. PyTorch's scaled_dot_product and
//   _cudnn_attention have the inputs [batch, heads, tokens, size], and its _flash_attention,
//   _efficient_attention and flash_attn's operators [batch, tokens, heads, size]. A mask is not recorded, so
//   each query counts all keys. Lengths of sequences in one tensor are not recorded either.
// - Elementwise kernels, reductions and normalisations: the bytes of all inputs, and of the largest one again
//   as the result.
std::optional<Kernel> kineto_kernel(const std::string& kernel, const KinetoShape& shape);

}  // namespace netsim
