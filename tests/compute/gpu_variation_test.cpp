// Tests stragglers and jitter: which GPUs are slow, and that variation has the stated size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/compute/gpu_variation.h"
#include "sim/core/errors.h"

namespace netsim::gpu_variation_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Cluster& cluster() {
  static const Cluster made =
      build_cluster(parse_config("topology: {kind: star, hosts: 16}\nhost: dgx_a100\n", "test.yaml"));
  return made;
}
std::vector<Straggler> stragglers(const std::string& yaml) {
  return read_stragglers(parse_config(yaml, "gpus.yaml"), cluster());
}

VaryingTimes times(const GpuVariation& how, std::uint64_t seed = 1, const std::string& job = "job") {
  std::vector<GpuId> gpus(16);
  for (std::uint32_t i = 0; i < 16; ++i) gpus[i] = 15 - i;  // rank r on GPU 15 - r
  return VaryingTimes(std::make_unique<WorkDurations>(std::vector<Time>{1'000'000}), how, gpus, seed, job);
}
VaryingTimes times(double jitter, const std::vector<Straggler>& slow, std::uint64_t seed = 1,
                   const std::string& job = "job") {
  return times({{}, jitter, slow}, seed, job);
}

ComputeRequest task(std::uint32_t id, std::uint32_t iteration = 0) {
  return {.task = id, .iteration = iteration};
}

TEST(GpuVariation, StragglersTakeLongerInTheirIterations) {
  const VaryingTimes varied =
      times(0, stragglers("[{gpu: host1/gpu2, slowdown: 1.5, first_iteration: 2, last_iteration: 3}, "
                          "{host: host1, slowdown: 2}]"));
  const std::uint32_t slowest = 15 - 10;
  EXPECT_EQ(varied.duration(slowest, task(0, 1)), 2'000'000);
  EXPECT_EQ(varied.duration(slowest, task(0, 2)), 3'000'000);
  EXPECT_EQ(varied.duration(slowest, task(0, 3)), 3'000'000);
  EXPECT_EQ(varied.duration(slowest, task(0, 4)), 2'000'000);
  EXPECT_EQ(varied.duration(0, task(0, 2)), 2'000'000);
  EXPECT_EQ(varied.duration(15, task(0, 2)), 1'000'000);
}

TEST(GpuVariation, RefusesGpusThatAreNotThere) {
  const auto message = [](const std::string& yaml) {
    try {
      stragglers(yaml);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_EQ(message("[{host: host1, slowdown: 2}]"), "taken");
  EXPECT_THAT(message("[{gpu: host1/gpu8, slowdown: 2}]"), HasSubstr("no GPU 'host1/gpu8', did you mean"));
  EXPECT_THAT(message("[{host: host2, slowdown: 2}]"), HasSubstr("no host 'host2'"));
  EXPECT_THAT(message("[{slowdown: 2}]"), HasSubstr("one of 'gpu' and 'host'"));
  EXPECT_THAT(message("[{host: host1}]"), HasSubstr("slowdown"));
  EXPECT_THAT(message("[{host: host1, slowdown: 0.5}]"), HasSubstr("slowdown"));
  EXPECT_THAT(message("[{host: host1, slowdown: 2, first_iteration: 3, last_iteration: 2}]"),
              HasSubstr("before first_iteration"));
  EXPECT_THAT(message("{host: host1}"), HasSubstr("a list"));
}

// Mean 1 and the standard deviation that was asked for, over many tasks.
TEST(GpuVariation, JitterHasItsMeanAndDeviation) {
  const VaryingTimes varied = times(0.05, {});
  constexpr int kTasks = 40'000;
  double sum = 0, squares = 0;
  for (std::uint32_t id = 0; id < kTasks; ++id) {
    const double factor = static_cast<double>(varied.duration(id % 16, task(id))) / 1e6;
    sum += factor;
    squares += factor * factor;
  }
  const double mean = sum / kTasks, deviation = std::sqrt(squares / kTasks - mean * mean);
  EXPECT_NEAR(mean, 1, 4 * 0.05 / std::sqrt(kTasks));
  EXPECT_NEAR(deviation, 0.05, 0.001);
}

TEST(GpuVariation, GpusHaveTheQuantilesOfANormalDistribution) {
  constexpr std::uint32_t kGpus = (1U << 15) - 1;
  std::vector<double> slowness = slowness_of_gpus(kGpus, 0.015, 7);
  std::sort(slowness.begin(), slowness.end());
  for (std::uint32_t j = 0; j < kGpus; ++j) {
    const double z = (slowness[j] - 1) / 0.015;
    ASSERT_NEAR(0.5 * std::erfc(-z / std::sqrt(2.0)), (j + 1.0) / (kGpus + 1), 1e-7) << j;
  }
}

// The slowest of a number of GPUs is equally slow with every seed, whichever it is. GPUs that were there
// before keep their speed.
TEST(GpuVariation, LargerClustersHaveSlowerGpusByNoChance) {
  const std::vector<double> one = slowness_of_gpus(1023, 0.015, 1), other = slowness_of_gpus(1023, 0.015, 2);
  EXPECT_NE(one, other);
  EXPECT_NE(one, slowness_of_gpus(1023, 0.016, 1));
  double before = 1;
  for (const std::ptrdiff_t count : {7, 63, 511, 1023}) {
    const double slowest = *std::max_element(one.begin(), one.begin() + count);
    EXPECT_EQ(slowest, *std::max_element(other.begin(), other.begin() + count));
    EXPECT_GT(slowest, before);
    before = slowest;
  }
  const std::vector<double> fewer = slowness_of_gpus(600, 0.015, 1);
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), one.begin()));
}

TEST(GpuVariation, SlownessIsOfTheGpuInAllJobs) {
  const std::vector<double> slowness = slowness_of_gpus(16, 0.05, 1);
  const VaryingTimes one = times({slowness, 0, {}}), other_job = times({slowness, 0, {}}, 2, "other");
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    EXPECT_NEAR(static_cast<double>(one.duration(rank, task(0))), 1e6 * slowness[15 - rank], 1);
    EXPECT_EQ(one.duration(rank, task(0)), one.duration(rank, task(1, 3)));
    EXPECT_EQ(one.duration(rank, task(0)), other_job.duration(rank, task(0)));
  }
}

TEST(GpuVariation, JitterIsDrawnBySeedJobRankAndTask) {
  const VaryingTimes one = times(0.05, {}), again = times(0.05, {}), other_seed = times(0.05, {}, 2),
                     other_job = times(0.05, {}, 1, "other");
  int different = 0;
  for (std::uint32_t id = 0; id < 100; ++id) {
    EXPECT_EQ(one.duration(3, task(id)), again.duration(3, task(id)));
    different += one.duration(3, task(id)) != other_seed.duration(3, task(id)) ? 1 : 0;
    different += one.duration(3, task(id)) != other_job.duration(3, task(id)) ? 1 : 0;
    different += one.duration(3, task(id)) != one.duration(4, task(id)) ? 1 : 0;
    different += one.duration(3, task(id)) != one.duration(3, task(id + 1)) ? 1 : 0;
  }
  EXPECT_GT(different, 390);
}

}  // namespace
}  // namespace netsim::gpu_variation_test
