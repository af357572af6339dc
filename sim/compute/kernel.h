// Kernel and Work: the computation of a task, as data. A compute model turns it into a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

// Precision of a kernel's multiplications. `half` is bf16 or fp16, which have one rate. `fp32` does not use
// tensor cores, `tf32` does. `fp8` and `fp4` include formats with scales (MXFP8, NVFP4).
enum class Precision : std::uint8_t { half, fp32, tf32, fp8, fp4 };
const char* to_string(Precision precision);
// Returns the bits of an operand of that precision.
std::int64_t operand_bits(Precision precision);

// KernelSlice: the thread blocks of one kernel between two of its progress points. A kernel has `count` of
// them, evenly spread over its blocks, and slice i ends at point i + 1. The slices of a kernel are works of
// tasks that follow each other; together they take as long as the kernel (docs/concepts/progress_points.md).
struct KernelSlice {
  std::int64_t index = 0, count = 1;
  // Point i + 1 says that input is there up to it, not that results are. A wave then runs in the slice whose
  // input completes the input of all its blocks.
  bool awaits = false;
  // A kernel of the collective library waits for the point. Tiles of the next wave have the multiprocessors
  // before it can begin, so the slice ends with that wave.
  bool starts_kernel = false;
  bool operator==(const KernelSlice&) const = default;
};

// Kernel: the work of one GPU kernel. The compute model turns it into a time.
struct Kernel {
  enum class Kind : std::uint8_t {
    gemm,    // batch x (m x k) * (k x n), operands as `precision` has them, results of `element_bytes`
    memory,  // memory-bound: `bytes` through HBM
    fixed,   // `duration`, measured or given
    // Fused attention: 2 m n k operations for each of `batch` heads, and `bytes` through HBM. The m x n
    // scores stay on the chip. m is the number of queries, n that of keys per query on average. k is the head
    // size times the number of matrix products: 2 forward, 5 backward with recomputed scores.
    attention
  };
  Kind kind = Kind::memory;
  std::string name;  // "qkv_gemm", "layer_norm", ...
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::int64_t element_bytes = 2;
  Precision precision = Precision::half;  // for a GEMM or attention
  // Number of equal pieces that a GEMM is cut into; this kernel is one of them, and m is the piece's. They
  // run in turn on streams of their own. So the next piece fills multiprocessors that the last wave of a
  // piece leaves idle.
  std::int64_t pieces = 1;
  bool backward = false;         // attention or FP8 GEMM: of the backward pass, which is slower
  bool weight_gradient = false;  // GEMM: it computes gradients of weights
  bool accumulates = false;      // GEMM: it adds its results to those in memory
  // Multiprocessors that communication kernels hold while this one multiplies on the others.
  std::int64_t held_multiprocessors = 0;
  KernelSlice slice;  // GEMM: this work is only that part of the kernel
  Bytes bytes = 0;
  std::int64_t atomic_adds = 0;  // memory: elements that it adds to the memory by atomic operations
  Time duration = 0;
};

// Returns the bytes that a GEMM moves through the memory: its own `bytes` if given. Otherwise each operand
// counts once, because caches and tiles reuse it.
double gemm_traffic(const Kernel& gemm);

// Work: the kernels of a compute task, which run one after the other.
struct Work {
  std::string name;  // "attention_forward"
  std::vector<Kernel> kernels;
};

}  // namespace netsim
