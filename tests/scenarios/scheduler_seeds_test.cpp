// Task schedulers under jitter and stragglers, with several sets and threads. No run stalls, and the times of
// every rank and of every critical path add up. The results do not depend on threads.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/random.h"
#include "sim/report/summary.h"
#include "tests/scenarios/jittered_star.h"
#include "tests/support/test_size.h"

namespace netsim::scheduler_seeds_test {
namespace {

const std::vector<std::string> kSchedulers{
    "fifo",
    "{kind: fifo, part: 100 KB, in_flight: 2}",
    "{kind: priority, part: 50 KB}",
    "{kind: priority, order: tail, part: 200 KB, in_flight: 2, fuse: true}",
    "{kind: priority, order: tic, part: 0}",
    "{kind: priority, order: tac, part: 100 KB, fuse: true}",
    "{kind: credit, part: 100 KB, credit: 100 KB}",
    "{kind: credit, part: 60 KB, credit: 200 KB}",
    "{kind: preferred, part: 100 KB}",
    "{kind: preferred, prefer: [ep, pp], part: 100 KB}",
    "{kind: trirace, part: 100 KB}",
    "{kind: trirace, sparse: [ep, all_gather], part: 60 KB, in_flight: 2}",
    "merge",
    "{kind: ddp, first_bucket: 100 KB, bucket: 500 KB}",
};

// Layers with random times, bytes and exchange.
std::string random_layers(std::uint64_t seed) {
  RandomStream random(seed, "layers of a test");
  std::string text = "{kind: layers, replicas: 4, iterations: 3, layers: [";
  for (std::uint64_t layer = 0, last = 2 + random.below(6); layer <= last; ++layer) {
    text += (layer == 0 ? "" : ", ") + ("{name: l" + std::to_string(layer)) +
            ", forward: " + std::to_string(1 + random.below(20)) +
            " us, backward: " + std::to_string(1 + random.below(40)) +
            " us, bytes: " + std::to_string(1 + random.below(600)) + " KB}";
  }
  const char* exchanges[] = {"all_reduce", "{kind: servers, servers: 2}", "dear", "all_reduce"};
  return text + "], exchange: " + exchanges[random.below(4)] + "}";
}

// Collectives, messages and computations that depend on random earlier ones, on four ranks.
std::string random_tasks(std::uint64_t seed) {
  RandomStream random(seed, "tasks of a test");
  std::string text = "{kind: tasks, ranks: 4, iterations: 2, groups: {low: 0-1, high: 2-3}, tasks: [";
  std::vector<std::string> on_all;
  for (std::uint64_t i = 0, last = 8 + random.below(12); i <= last; ++i) {
    const std::string name = "t" + std::to_string(i);
    std::string after;
    if (!on_all.empty() && random.below(4) != 0) after = ", after: " + on_all[random.below(on_all.size())];
    const std::string bytes = ", bytes: " + std::to_string(1 + random.below(400)) + " KB";
    const std::uint64_t kind = random.below(5);
    text += std::string(i == 0 ? "" : ", ") + "{name: " + name;
    if (kind == 0) text += ", collective: all_reduce" + bytes;
    if (kind == 1) text += ", collective: all_to_all, stream: ep" + bytes;
    if (kind == 2)
      text += std::string(", collective: all_gather, on: ") + (i % 2 == 0 ? "low" : "high") + bytes;
    if (kind == 3) text += ", from: low, to: high" + bytes;
    if (kind == 4) text += ", compute: " + std::to_string(1 + random.below(50)) + " us";
    text += after + "}";
    if (kind != 2 && kind != 3) on_all.push_back(name);
  }
  return text + "]}";
}

// Tensor, pipeline and data parallelism; `more` are further keys.
std::string small_gpt(const std::string& more) {
  return "{kind: ptdp, model: {layers: 4, hidden: 256, heads: 4, sequence: 64, vocabulary: 1024}, "
         "parallel: {tensor: 2, pipeline: 2, data: 2}, microbatch: 1, microbatches: 2, iterations: 2, "
         "gradient: {bucket: 1 MB, overlap: true}" +
         more + "}";
}

std::string small_experts() {
  return "{kind: ptdp, model: {kind: llama, layers: 2, hidden: 128, heads: 4, groups: 4, inner: 256, "
         "sequence: "
         "64, vocabulary: 1024, experts: {count: 4, top_k: 2}}, parallel: {pipeline: 2, data: 4, expert: 2}, "
         "microbatches: 2, recompute: none, optimizer: distributed_adam, iterations: 2, gradient: {dtype: "
         "fp32, bucket: 1 MB, overlap: true}}";
}

struct ScheduledScenario {
  std::string workload, scheduler, order = "agreed";
  std::uint64_t seed = 1;
  std::uint32_t sets = 1, threads = 1;
};

class ScheduledRuns : public test::JitteredStar {
 protected:
  Results run(const ScheduledScenario& scenario) const {
    return JitteredStar::run({scenario.workload,
                              scenario.seed,
                              scenario.sets,
                              scenario.threads,
                              {"output.critical_path=true", "scheduling.tasks=" + scenario.scheduler,
                               "scheduling.order=" + scenario.order}});
  }
};

Time sum_of(const PathSummary& path) {
  return std::accumulate(path.communication.begin(), path.communication.end(), path.compute + path.held);
}

void expect_that_times_add_up(const JobResult& job) {
  test::expect_rank_times_add_up(job);
  ASSERT_EQ(job.paths.size(), job.iteration_ends.size());
  Time begin = job.begin;
  for (std::size_t i = 0; i < job.paths.size(); ++i) {
    EXPECT_EQ(sum_of(job.paths[i]), job.iteration_ends[i] - begin) << "iteration " << i;
    begin = job.iteration_ends[i];
  }
}

class SchedulerSeeds : public ScheduledRuns {
 protected:
  // Runs 200 seeds with each scheduler, or fewer. `make` returns the workload of a seed.
  template <class Make>
  void expect_no_stall(const Make& make) const {
    const std::uint64_t seeds = test::by_size<std::uint64_t>(200, 1, 1);
    std::uint64_t seed = 0;
    for (const std::string& scheduler : kSchedulers) {
      for (std::uint64_t i = 0; i < seeds; ++i) {
        ScheduledScenario scenario{make(++seed), scheduler};
        scenario.seed = seed;
        const std::string name = scheduler + ", seed " + std::to_string(seed) + "\n" + scenario.workload;
        Results results;
        ASSERT_NO_THROW(results = run(scenario)) << name;
        ASSERT_EQ(results.outcome, Outcome::done) << name << "\n"
                                                  << (results.waiting.empty() ? "" : results.waiting.front());
        expect_that_times_add_up(results.jobs[0]);
        if (HasFailure()) FAIL() << name;
      }
    }
  }
};

TEST_F(SchedulerSeeds, NeverStallWithLayers) { expect_no_stall(random_layers); }
TEST_F(SchedulerSeeds, NeverStallWithTasks) { expect_no_stall(random_tasks); }
TEST_F(SchedulerSeeds, NeverStallWithTensorPipelineAndDataParallelism) {
  expect_no_stall([](std::uint64_t seed) {
    const char* more[] = {"", ", ordered_p2p: true", ", overlap_p2p: false"};
    return small_gpt(more[seed % 3]);
  });
}
TEST_F(SchedulerSeeds, NeverStallWithExperts) {
  expect_no_stall([](std::uint64_t) { return small_experts(); });
}

class SchedulerThreads : public ScheduledRuns {
 protected:
  void expect_same(ScheduledScenario scenario) const {
    const Results one = run(scenario);
    const std::vector<std::pair<std::uint32_t, std::uint32_t>> all{
        {5, 1}, {0, 3}, {2, 1}, {3, 1}, {4, 1}, {6, 1}, {7, 1}, {8, 1}, {0, 2}, {0, 4}, {0, 8}, {8, 4}};
    const std::size_t count = test::by_size<std::size_t>(all.size(), 2, 2);
    for (std::size_t i = 0; i < count; ++i) {
      std::tie(scenario.sets, scenario.threads) = all[i];
      const Results other = run(scenario);
      const std::string name = scenario.scheduler + ", " + scenario.order + ", " +
                               std::to_string(scenario.sets) + " sets, " + std::to_string(scenario.threads) +
                               " threads\n" + scenario.workload;
      EXPECT_EQ(one.outcome, other.outcome) << name;
      EXPECT_EQ(one.fingerprints.results, other.fingerprints.results) << name;
      EXPECT_EQ(one.fingerprints.packets, other.fingerprints.packets) << name;
      EXPECT_EQ(summary_json(one), summary_json(other)) << name;
      EXPECT_EQ(one.waiting, other.waiting) << name;
    }
  }
};

TEST_F(SchedulerThreads, DoNotShowInLayersNorInTasks) {
  std::uint64_t seed = 1;
  for (const std::string& scheduler : kSchedulers) {
    ++seed;
    expect_same({seed % 2 == 0 ? random_layers(seed) : random_tasks(seed), scheduler});
  }
}
TEST_F(SchedulerThreads, DoNotShowInParallelTraining) {
  std::size_t index = 0;
  for (const std::string& scheduler : test::share_of(kSchedulers, 3, 6))
    expect_same({++index % 2 == 0 ? small_experts() : small_gpt(", ordered_p2p: true"), scheduler});
}
// Ranks that order collectives for themselves stall, in the same way for any number of sets.
TEST_F(SchedulerThreads, DoNotShowInAStall) {
  expect_same(
      {"{kind: tasks, ranks: 2, tasks: [{name: slow, compute: 300 us, queue: 1, on: 1}, {name: b5, "
       "compute: 100 us}, {name: b3, compute: 50 us}, {name: g5, collective: all_reduce, bytes: 1 MB, "
       "after: [b5, slow]}, {name: g3, collective: all_reduce, bytes: 1 MB, after: b3}]}",
       "{kind: credit, part: 1 MB, credit: 1 MB}", "local"});
}

}  // namespace
}  // namespace netsim::scheduler_seeds_test
