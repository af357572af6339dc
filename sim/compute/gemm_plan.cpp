#include "sim/compute/gemm_plan.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <vector>

namespace netsim {
namespace {

constexpr std::int64_t kSmsOfTpc = 2;
// Whether single blocks take an SM of another TPC, for each half of the GPCs in turn. The half whose GPCs
// have a TPC more is ahead. The last four entries repeat; the order was observed for up to 32 blocks.
constexpr std::array<bool, 10> kTakesAnotherTpc{true,  true, false, true,  false,
                                                false, true, true,  false, false};
constexpr std::size_t kRepeated = 4;
constexpr std::int64_t kOwnTiles = 2;  // of a cluster of a persistent kernel
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
  const std::int64_t half = std::max<std::int64_t>(1, cores.gpcs / 2);
  std::int64_t clusters = cores.multiprocessors / kSmsOfTpc;
  for (std::size_t turn = 0; held > 0; ++turn, held -= half) {
    while (turn >= kTakesAnotherTpc.size()) turn -= kRepeated;
    if (kTakesAnotherTpc[turn]) clusters -= std::min(held, half);
  }
  return std::max<std::int64_t>(1, clusters);
}

std::int64_t rounds_of_tiles(std::int64_t tiles, std::int64_t grid, std::int64_t running) {
  grid = std::min(grid, tiles);
  if (running >= grid) return parts_of(tiles, running);
  const auto own_of = [&](std::int64_t cluster) {
    return std::min(kOwnTiles, parts_of(tiles - cluster, grid));
  };
  const std::int64_t dealt = std::max<std::int64_t>(0, tiles - kOwnTiles * grid);
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> ends;
  for (std::int64_t cluster = 0; cluster < running; ++cluster)
    ends.push(own_of(cluster) + dealt / running + (cluster < dealt % running ? 1 : 0));
  std::int64_t last = dealt > 0 ? kOwnTiles + parts_of(dealt, running) : own_of(0);
  for (std::int64_t cluster = running; cluster < grid; ++cluster) {
    const std::int64_t end = ends.top() + own_of(cluster);
    ends.pop();
    ends.push(end);
    last = std::max(last, end);
  }
  return last;
}

double waves_of(const GemmPlan& plan, const TensorCores& cores, std::int64_t running, std::int64_t pieces) {
  const std::int64_t clusters = parts_of(plan.blocks * pieces, cores.cluster);
  const std::int64_t grid = cores.persistent ? usable_clusters(cores, 0) : running;
  return static_cast<double>(rounds_of_tiles(clusters, grid, running)) / static_cast<double>(pieces);
}

GemmPlan plan_gemm(const Kernel& gemm, const TensorCores& cores) {
  GemmPlan best;
  double least = 0;
  const std::int64_t clusters_at_once = usable_clusters(cores, 0);
  const auto consider = [&](std::int64_t m, std::int64_t n) {
    const GemmPlan plan = plan_with(m, n, gemm, cores);
    const double cycles = waves_of(plan, cores, clusters_at_once, gemm.pieces) * plan.block_cycles;
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
