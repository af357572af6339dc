// Do GEMMs take the tiles and waves that their clusters find multiprocessors for?
#include "sim/compute/gemm_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tests/compute/kernels.h"

namespace netsim::gemm_plan_test {
namespace {

using test::gemm;

// The SMs of single held blocks on an H200: diag_placement_steve.txt in m3-sm-share of
// harshanavkis/loom-motivation-experiments. SMs 2i and 2i + 1 are a TPC.
TEST(GemmPlan, ClustersOfTwoNeedBothMultiprocessorsOfATpc) {
  const std::vector<std::vector<int>> observed{
      {0, 2, 4, 6, 124, 126, 128, 130},
      {0, 2, 4, 6, 8, 10, 12, 14, 124, 125, 126, 127, 128, 129, 130, 131},
      {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 124, 125, 126, 127, 128, 129, 130, 131},
      {0,  1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  11,  12,  13,  14,  15,
       16, 18, 20, 22, 24, 26, 28, 30, 124, 125, 126, 127, 128, 129, 130, 131}};
  const TensorCores cores;
  for (const std::vector<int>& sms : observed) {
    std::set<int> tpcs;
    for (const int sm : sms) tpcs.insert(sm / 2);
    EXPECT_EQ(usable_clusters(cores, static_cast<std::int64_t>(sms.size())),
              66 - static_cast<std::int64_t>(tpcs.size()));
  }
  for (std::int64_t held = 1; held <= 132; ++held) {
    const std::int64_t clusters = usable_clusters(cores, held), before = usable_clusters(cores, held - 1);
    EXPECT_GE(clusters, 1);
    EXPECT_LE(clusters, std::max<std::int64_t>(1, 66 - (held + 1) / 2));
    EXPECT_TRUE(clusters == before || clusters == before - 1) << held;
  }
}

TEST(GemmPlan, TilesFitTheWavesOfTheWholeGpu) {
  const TensorCores cores{.pipeline_cycles = 4096};
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{2048, 9216},
                             {2048, 3072},
                             {2048, 1536},
                             {8192, 4096},
                             {1024, 2560}}) {
    const GemmPlan plan = plan_gemm(gemm(m, n, 8192), cores);
    const double waves = waves_of(plan, cores, 66, 1);
    EXPECT_GT(static_cast<double>(m * n) / static_cast<double>(132 * plan.tile_m * plan.tile_n) / waves, 0.9)
        << m << " x " << n << " in tiles of " << plan.tile_m << " x " << plan.tile_n;
    EXPECT_GT(waves_of(plan, cores, 54, 1), waves) << "cuBLAS does not know what is held";
  }
}

// A reference that walks through the rounds one by one.
std::int64_t rounds_by_steps(std::int64_t tiles, std::int64_t grid, std::int64_t running) {
  grid = std::min(grid, tiles);
  std::vector<std::int64_t> owned(static_cast<std::size_t>(grid));
  std::int64_t dealt = 0, rounds = 0, begun = std::min(running, grid);
  for (std::int64_t tile = 0; tile < tiles; ++tile)
    ++(tile < 2 * grid ? owned[static_cast<std::size_t>(tile % grid)] : dealt);
  std::vector<std::size_t> resident;
  for (std::int64_t i = 0; i < begun; ++i) resident.push_back(static_cast<std::size_t>(i));
  while (!resident.empty()) {
    ++rounds;
    std::vector<std::size_t> staying;
    for (const std::size_t cluster : resident) {
      if (owned[cluster] > 0)
        --owned[cluster];
      else
        --dealt;
    }
    std::int64_t left = dealt;
    for (const std::size_t cluster : resident) {
      const bool more = owned[cluster] > 0 || left-- > 0;
      staying.push_back(more ? cluster : static_cast<std::size_t>(begun < grid ? begun++ : grid));
    }
    std::erase(staying, static_cast<std::size_t>(grid));
    resident = staying;
  }
  return rounds;
}

TEST(GemmPlan, ClustersThatFindNoMultiprocessorsRunTheirFirstTilesLater) {
  EXPECT_EQ(rounds_of_tiles(512, 66, 66), 8);
  EXPECT_EQ(rounds_of_tiles(512, 66, 65), 9) << "one cluster begins after seven rounds";
  EXPECT_EQ(rounds_of_tiles(512, 66, 62), 10);
  EXPECT_EQ(rounds_of_tiles(132, 66, 65), 4) << "two rounds belong to each cluster";
  EXPECT_EQ(rounds_of_tiles(40, 66, 50), 1) << "all tiles find room";
  for (const std::int64_t grid : {1, 5, 16, 66}) {
    for (std::int64_t running = 1; running <= grid; running += 1 + grid / 7) {
      for (const std::int64_t tiles : {1, 3, 15, 16, 17, 31, 33, 66, 67, 131, 132, 133, 500, 512, 901}) {
        EXPECT_EQ(rounds_of_tiles(tiles, grid, running), rounds_by_steps(tiles, grid, running))
            << tiles << " tiles, " << running << " of " << grid;
      }
    }
  }
  TensorCores cores;
  EXPECT_DOUBLE_EQ(waves_of({256, 128, 1024, 1}, cores, 65, 1), 9);
  cores.persistent = false;
  EXPECT_DOUBLE_EQ(waves_of({256, 128, 1024, 1}, cores, 65, 1), 8);
}

TEST(GemmPlan, PiecesShareTheirWaves) {
  const TensorCores cores{.pipeline_cycles = 4096};
  const GemmPlan plan{256, 128, 100, 1};
  EXPECT_DOUBLE_EQ(waves_of(plan, cores, 66, 1), 1);
  EXPECT_DOUBLE_EQ(waves_of(plan, cores, 66, 4), 4.0 / 4) << "400 blocks are four waves of 132";
  EXPECT_DOUBLE_EQ(waves_of({256, 128, 140, 1}, cores, 66, 4), 5.0 / 4);
}

TEST(GemmPlan, GpusWithoutClustersRunEachBlockAlone) {
  const TensorCores cores{.multiprocessors = 108, .cluster = 1, .persistent = false};
  EXPECT_EQ(usable_clusters(cores, 0), 108);
  EXPECT_EQ(usable_clusters(cores, 7), 101);
  EXPECT_EQ(usable_clusters(cores, 200), 1);
  EXPECT_DOUBLE_EQ(waves_of({256, 128, 109, 1}, cores, 108, 1), 2);
}

TEST(GemmPlan, ExactAccumulationAddsSumsOfATile) {
  TensorCores cores{.flops_per_cycle = 8192};
  const Kernel kernel = gemm(256 * 132, 128, 4096);
  const GemmPlan fast = plan_gemm(kernel, cores);
  cores.promoted_sums_per_cycle = 128;
  const GemmPlan exact = plan_gemm(kernel, cores);
  EXPECT_EQ(exact.tile_m * exact.tile_n, 256 * 128);
  EXPECT_NEAR(exact.block_cycles - fast.block_cycles, 4096.0 / 128 * 256 * 128 / 128, 1e-6);
}

}  // namespace
}  // namespace netsim::gemm_plan_test
