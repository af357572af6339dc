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
};

// Returns the work of a kernel that an operator with these shapes has launched. Nothing where the kernel's
// name and the operator do not tell it.
//
// - Products of matrices: kernels with gemm, nvjet, cutlass, xmma or Cijk in their names, of aten::mm, addmm,
//   bmm, baddbmm, linear and _scaled_mm.
// - Fused attention: kernels with flash, fmha or attention in their names, of operators with the inputs
//   [batch, tokens, heads, size]. A mask is not recorded, so each query counts all keys.
// - Elementwise kernels, reductions and normalisations: the bytes of all inputs, and of the largest one again
//   as the result.
std::optional<Kernel> kineto_kernel(const std::string& kernel, const KinetoShape& shape);

}  // namespace netsim
