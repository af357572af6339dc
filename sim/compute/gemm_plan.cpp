#include "sim/compute/gemm_plan.h"

#include <algorithm>
#include <array>

namespace netsim {
namespace {

constexpr std::int64_t kSmsOfTpc = 2;
constexpr std::int64_t kTpcsAtOnce = 2;  // of a GPC, whose SMs held blocks take in turn
// One side of a tile is a multiple of the 64 rows that a warp group multiplies, the other of 16 columns (PTX
// ISA, wgmma). The sums of 256 x 128 results fill the registers of an SM's warps.
constexpr std::array<std::int64_t, 4> kHeights{64, 128, 192, 256};
constexpr std::int64_t kLeastSide = 64, kMostSide = 256, kWidthStep = 16, kMostResults = 256 * 128;

constexpr std::int64_t parts_of(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }

// Returns the share of the tensor cores' rate that the L2 cache feeds. Each block loads its rows and columns;
// the blocks of a cluster share the longer side of the tile.
double fed_share(std::int64_t m, std::int64_t n, const Kernel& gemm, const TensorCores& cores) {
  const auto shorter = static_cast<double>(std::min(m, n)), longer = static_cast<double>(std::max(m, n));
  const double loaded = (shorter + longer / static_cast<double>(cores.cluster)) *
                        static_cast<double>(operand_bits(gemm.precision)) / 8;
  const double cycles = 2 * shorter * longer / cores.flops_per_cycle;
  const double fed = cores.l2_bytes_per_cycle / static_cast<double>(cores.multiprocessors);
  return std::min(1.0, fed * cycles / loaded);
}

GemmPlan plan_with(std::int64_t m, std::int64_t n, const Kernel& gemm, const TensorCores& cores) {
  const double step = 2 * static_cast<double>(m * n) / cores.flops_per_cycle;
  const double filled = cores.pipeline_cycles * static_cast<double>(m * n) / kMostResults;
  const auto k = static_cast<double>(gemm.k);
  const double added = cores.promoted_sums_per_cycle > 0
                           ? k / kPromotedSteps * static_cast<double>(m * n) / cores.promoted_sums_per_cycle
                           : 0;
  return {m, n, parts_of(gemm.m, m) * parts_of(gemm.n, n) * gemm.batch,
          step * k / fed_share(m, n, gemm, cores) + filled + added};
}

}  // namespace

std::int64_t usable_clusters(const TensorCores& cores, std::int64_t held) {
  if (cores.cluster == 1) return std::max<std::int64_t>(1, cores.multiprocessors - held);
  const std::int64_t tpcs = cores.multiprocessors / kSmsOfTpc;
  std::int64_t clusters = 0;
  for (std::int64_t gpc = 0; gpc < cores.gpcs; ++gpc) {
    const auto share = [&](std::int64_t whole) {
      return whole / cores.gpcs + (gpc < whole % cores.gpcs ? 1 : 0);
    };
    const std::int64_t mine = share(held), opened = kSmsOfTpc * kTpcsAtOnce;
    const std::int64_t broken = mine / opened * kTpcsAtOnce + std::min(mine % opened, kTpcsAtOnce);
    clusters += std::max<std::int64_t>(0, share(tpcs) - broken);
  }
  return std::max<std::int64_t>(1, clusters);
}

double waves_of(const GemmPlan& plan, const TensorCores& cores, std::int64_t held, std::int64_t pieces) {
  const std::int64_t clusters = parts_of(plan.blocks * pieces, cores.cluster);
  return static_cast<double>(parts_of(clusters, usable_clusters(cores, held))) / static_cast<double>(pieces);
}

GemmPlan plan_gemm(const Kernel& gemm, const TensorCores& cores) {
  GemmPlan best;
  double least = 0;
  const auto consider = [&](std::int64_t m, std::int64_t n) {
    const GemmPlan plan = plan_with(m, n, gemm, cores);
    const double cycles = waves_of(plan, cores, 0, gemm.pieces) * plan.block_cycles;
    const bool larger = cycles == least && m * n > best.tile_m * best.tile_n;
    if (best.blocks != 0 && cycles >= least && !larger) return;
    best = plan;
    least = cycles;
  };
  for (const std::int64_t height : kHeights) {
    for (std::int64_t width = kLeastSide; width <= kMostSide && height * width <= kMostResults;
         width += kWidthStep) {
      consider(height, width);
      consider(width, height);
    }
  }
  return best;
}

}  // namespace netsim
