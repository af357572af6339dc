// Does the GPU wait for its host where, and only where, the host has waited for the GPU?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "tests/training/strategy/played_jobs.h"

namespace netsim::host_launches_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;

constexpr int kLayers = 3, kMicrobatches = 2;

std::string job(const std::string& strategies, const std::string& more = "expert: 4") {
  return "{kind: ptdp, model: {kind: llama, layers: 3, hidden: 64, heads: 4, groups: 4, inner: 96, sequence: "
         "16, vocabulary: 128, experts: {count: 8, top_k: 2}}, parallel: {data: 4, " +
         more + "}, microbatches: 2, optimizer: none, recompute: none" + strategies + "}";
}

// Returns the end of a job whose computations on the GPU take `computation` each.
Time end(const std::string& workload, Time computation) {
  const auto source = parse_workload(workload)->tasks(4);
  std::vector<Time> durations;
  durations.reserve(source->works().size());
  for (const Work& work : source->works())
    durations.push_back(work.name == "host_launch" ? work.kernels.front().duration : computation);
  TaskPlayer player(*source, 1, durations);
  test::expect_done(player);
  return player.end();
}

// Returns the time that the host of the first rank launches.
Time launching(const std::string& workload) {
  const auto source = parse_workload(workload)->tasks(4);
  Time sum = 0;
  for (const Task& task : test::tasks_of(*source, 0))
    if (task.kind() == TaskKind::host_thread) sum += source->works()[task.work()].kernels.front().duration;
  return sum;
}

// The parts before the two waits of a layer are computations of their own.
TEST(HostLaunches, OfNoTimeChangeOnlyTheNumberOfComputations) {
  const std::string free = job(", strategies: [{kind: host_launches, kernel: 0 us, module: 0 us}]");
  const Time computation = 1 * kMicrosecond;
  EXPECT_EQ(end(free, computation), end(job(""), computation) + kLayers * kMicrobatches * computation);
  EXPECT_EQ(launching(free), 0);
}

// Behind each wait the GPU waits for one kernel. Then the host is ahead again.
TEST(HostLaunches, CostALaunchAtEachWaitWhereTheGpuIsSlow) {
  const std::string launches = ", strategies: [{kind: host_launches, kernel: 1 us, module: 1 us}]";
  const std::string free = ", strategies: [{kind: host_launches, kernel: 0 us, module: 0 us}]";
  const Time computation = 1 * kMillisecond, first = 2 * kMicrosecond;  // the first kernels: of the embedding
  const Time waits = 2 * kLayers * kMicrobatches * kMicrosecond;
  const Time longer = end(job(launches), computation) - end(job(free), computation);
  EXPECT_GE(longer, waits);
  EXPECT_LE(longer, waits + first);
}

// A computation of several kernels begins with its first one: the host launches the others beside the GPU.
TEST(HostLaunches, OfOtherKernelsHideBehindTheFirst) {
  const auto longer = [](const std::string& kernels) {
    const auto with = [&](const char* times) {
      return end(job(kernels + ", strategies: [{kind: host_launches, " + times + "}]"), 1 * kMillisecond);
    };
    return with("kernel: 1 us, module: 1 us") - with("kernel: 0 us, module: 0 us");
  };
  EXPECT_EQ(longer(", tensor_copies: megatron_core_sequential, routing_kernels: megatron_core"), longer(""));
}

// The next node waits until the host has launched all kernels of the one before.
TEST(HostLaunches, BoundTheStepWhereTheGpuTakesNoTime) {
  for (const char* kernels : {"", ", tensor_copies: megatron_core_sequential"}) {
    const std::string launches = job(std::string(kernels) + ", strategies: [host_launches]");
    EXPECT_EQ(end(launches, 0), launching(launches)) << kernels;
  }
}

// A GEMM of weights takes its module, in FP8 the longer one; experts in turn take one each.
TEST(HostLaunches, TakeTheTimeOfTheirModules) {
  const auto with = [](const std::string& times, const std::string& more = "") {
    return launching(job(more + ", strategies: [{kind: host_launches, " + times + "}]"));
  };
  const Time modules = with("kernel: 0 us, module: 1 us");
  // The projections of attention, and both GEMMs of the experts.
  EXPECT_EQ(modules, 4 * kLayers * kMicrobatches * kMicrosecond);
  EXPECT_EQ(with("kernel: 0 us, module: 1 us, reduced_module: 3 us", ", precision: fp8"), 3 * modules);
  EXPECT_EQ(with("kernel: 0 us, module: 1 us", ", tensor_copies: megatron_core_sequential"),
            (2 + 2 * 2) * kLayers * kMicrobatches * kMicrosecond);
}

TEST(HostLaunches, NeedCopiesOfTokens) {
  const auto error = [](const std::string& yaml) -> std::string {
    try {
      parse_workload(yaml)->tasks(4);
    } catch (const ConfigError& refused) {
      return refused.what();
    }
    return "it is not refused";
  };
  const auto refusal = ::testing::HasSubstr("needs routed experts and expert_exchange: all_to_all");
  EXPECT_THAT(error(job(", strategies: [host_launches]", "expert: 4, expert_exchange: dispatch")), refusal);
  EXPECT_THAT(error("{kind: ptdp, model: {kind: llama, layers: 1, hidden: 64, heads: 4, groups: 4, inner: "
                    "96, sequence: 16, "
                    "vocabulary: 128}, parallel: {data: 4}, strategies: [host_launches]}"),
              refusal);
}

}  // namespace
}  // namespace netsim::host_launches_test
