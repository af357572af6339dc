// GemmPlan: the tiles that cuBLAS multiplies a GEMM in on a GPU with clusters of thread blocks, and the waves
// that the tiles take.
//
// cuBLAS has kernels for many tile shapes (nvjet_hsh_128x192, ..., in its profiles on Hopper) and picks one
// for the whole GPU. It does not know of kernels that hold multiprocessors (SMs), unless it is told so.
//
// A Hopper kernel is persistent: whatever the tiles, its grid has a cluster of two blocks for each two SMs. A
// profile of an H200 has a grid of [2, 66] (compare.csv, see below). A cluster runs on the two SMs of a
// texture processing cluster (TPC) that are both free. GPUs without clusters (A100) run each block alone.
//
// Clusters that find no SMs wait until others end. If each owned all of its tiles, the kernel would take
// twice as long. If all tiles were dealt on demand, it would take little more than the share of SMs. Measured
// kernels lie between: a cluster owns its first two tiles, others are dealt (docs/evidence/one_host.md).
//
// Held single blocks take SMs of the GPU processing clusters (GPCs) in the order that an H200 showed. The
// source is harshanavkis/loom-motivation-experiments: diag_placement_steve.txt and compare.csv in
// m3-sm-share.
#pragma once

#include <cstdint>

#include "sim/compute/kernel.h"

namespace netsim {

// TensorCores: the hardware that a GEMM is planned for.
struct TensorCores {
  std::int64_t multiprocessors = 132;
  std::int64_t gpcs = 8;             // held single blocks take SMs of each in turn
  double flops_per_cycle = 4096;     // of one SM in the kernel's precision
  double l2_bytes_per_cycle = 5120;  // that the L2 cache delivers to all SMs
  double pipeline_cycles = 0;        // fill, drain and epilogue of a 256 x 128 tile
  // Sums that an SM adds in fp32 a cycle, where it does so after each kPromotedSteps of k; 0: it does not.
  double promoted_sums_per_cycle = 0;
  std::int64_t cluster = 2;  // blocks of a cluster: 2, or 1 on GPUs without clusters
  bool persistent = true;    // a cluster runs many tiles; otherwise the hardware deals a block for each tile
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

// Returns how many clusters run at once while `held` single blocks take an SM each. Returns 1 if there is no
// room for one.
std::int64_t usable_clusters(const TensorCores& cores, std::int64_t held);

// Returns the rounds of tiles until `tiles` tiles of clusters are done, one a cluster and round. The kernel
// has `grid` clusters, of which `running` find SMs at its begin.
std::int64_t rounds_of_tiles(std::int64_t tiles, std::int64_t grid, std::int64_t running);

// Returns the waves of the plan, a tile of each running cluster. `cores` are those that the kernel was
// launched for; of its clusters `running` find SMs. A kernel that is one of `pieces` equal ones shares
// its waves with the others, so the number may be a fraction.
double waves_of(const GemmPlan& plan, const TensorCores& cores, std::int64_t running, std::int64_t pieces);

}  // namespace netsim
