// GemmPlan: the tiles that cuBLAS multiplies a GEMM in on a GPU with clusters of thread blocks, and the waves
// that the tiles take.
//
// cuBLAS has kernels for many tile shapes (nvjet_hsh_128x192, ..., in its profiles on Hopper) and picks one
// for the whole GPU. It does not know of kernels that hold multiprocessors (SMs). A plan that fits the waves
// of the whole GPU therefore takes more waves beside such kernels.
//
// A kernel runs in clusters of two blocks. A cluster runs on the two SMs of a texture processing cluster
// (TPC) that are both free. GPUs without clusters (A100) run each block alone. Held blocks are spread over
// the GPU processing clusters (GPCs) in turn. In a GPC they take an SM of one TPC, then of another, and then
// the second SMs of both.
//
// NVIDIA publishes no order of placement. This one was chosen from five, as it fits kernels
// beside held SMs best (docs/concepts/compute.md).
#pragma once

#include <cstdint>

#include "sim/compute/kernel.h"

namespace netsim {

// TensorCores: the hardware that a GEMM is planned for.
struct TensorCores {
  std::int64_t multiprocessors = 132;
  std::int64_t gpcs = 8;             // TPCs of two SMs are spread over them evenly
  double flops_per_cycle = 4096;     // of one SM in the kernel's precision
  double l2_bytes_per_cycle = 5120;  // that the L2 cache delivers to all SMs
  double pipeline_cycles = 0;        // fill, drain and epilogue of a 256 x 128 tile
  // Sums that an SM adds in fp32 a cycle, where it does so after each kPromotedSteps of k; 0: it does not.
  double promoted_sums_per_cycle = 0;
  std::int64_t cluster = 2;  // blocks of a cluster: 2, or 1 on GPUs without clusters
};

// A kernel that accumulates exactly adds its sums to others in fp32 after so many steps of k. These are four
// multiplications of 32 steps: mma_promotion_interval in CUTLASS; DeepSeek-V3, arXiv 2412.19437, section
// 3.3.2.
constexpr double kPromotedSteps = 128;

struct GemmPlan {
  std::int64_t tile_m = 0, tile_n = 0;
  std::int64_t blocks = 0;  // tiles of the kernel, one thread block each
  double block_cycles = 0;  // cycles of one tile
};

// Returns the plan with the fewest cycles on the whole GPU; of equal ones that with the largest tile.
GemmPlan plan_gemm(const Kernel& gemm, const TensorCores& cores);

// Returns how many clusters run at once while `held` SMs are taken. Returns 1 if there is no room for one.
std::int64_t usable_clusters(const TensorCores& cores, std::int64_t held);

// Returns the waves of the plan beside `held` taken SMs. A kernel that is one of `pieces` equal ones shares
// its waves with the others, so the number may be a fraction.
double waves_of(const GemmPlan& plan, const TensorCores& cores, std::int64_t held, std::int64_t pieces);

}  // namespace netsim
