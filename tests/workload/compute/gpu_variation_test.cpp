// Stragglers and jitter: who is slow, and is what varies what it says?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/core/errors.h"
#include "sim/workload/compute/gpu_variation.h"

namespace netsim {
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

VaryingTimes times(const GpuVariation& how, std::uint64_t seed = 1, const std::string& job = "job",
                   std::uint32_t ranks = 16) {
  std::vector<std::uint32_t> gpus(ranks);
  for (std::uint32_t i = 0; i < ranks; ++i) gpus[i] = ranks - 1 - i;
  return VaryingTimes(std::make_unique<WorkDurations>(std::vector<Time>{1'000'000}), how, gpus, seed, job);
}
VaryingTimes times(double jitter, const std::vector<Straggler>& slow, std::uint64_t seed = 1,
                   const std::string& job = "job") {
  return times({0, jitter, slow}, seed, job);
}

Task task(std::uint32_t id, std::uint32_t iteration = 0) {
  Task made;
  made.id = id;
  made.iteration = iteration;
  return made;
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

// Mean 1 and the standard deviation that was asked for, over many GPUs.
TEST(GpuVariation, GpusHaveTheirMeanAndDeviation) {
  constexpr std::uint32_t kGpus = 40'000;
  const VaryingTimes varied = times({0.015, 0, {}}, 1, "job", kGpus);
  double sum = 0, squares = 0;
  for (std::uint32_t rank = 0; rank < kGpus; ++rank) {
    const double factor = static_cast<double>(varied.duration(rank, task(rank))) / 1e6;
    sum += factor;
    squares += factor * factor;
  }
  const double mean = sum / kGpus, deviation = std::sqrt(squares / kGpus - mean * mean);
  EXPECT_NEAR(mean, 1, 4 * 0.015 / std::sqrt(kGpus));
  EXPECT_NEAR(deviation, 0.015, 0.0003);
}

// A GPU is what it is: for all its tasks, in whatever job, as whatever rank.
TEST(GpuVariation, IsOfTheGpu) {
  const VaryingTimes one = times({0.05, 0, {}}), other_job = times({0.05, 0, {}}, 1, "other"),
                     fewer = times({0.05, 0, {}}, 1, "job", 8), other_seed = times({0.05, 0, {}}, 2);
  int different = 0;
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    EXPECT_EQ(one.duration(rank, task(0)), one.duration(rank, task(1, 3)));
    EXPECT_EQ(one.duration(rank, task(0)), other_job.duration(rank, task(0)));
    if (rank >= 8) {
      EXPECT_EQ(one.duration(rank, task(0)), fewer.duration(rank - 8, task(0)));
    }
    different += one.duration(rank, task(0)) != other_seed.duration(rank, task(0)) ? 1 : 0;
    different += one.duration(rank, task(0)) != one.duration(15 - rank, task(0)) ? 1 : 0;
  }
  EXPECT_GE(different, 31);
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
}  // namespace netsim
