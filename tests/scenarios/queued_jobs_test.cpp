// Tests jobs that do not fit on the cluster together. They get their GPUs in order of arrival, when those of
// ended jobs are free, and no GPU ever has two jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"

namespace netsim::queued_jobs_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string cluster(const std::string& more = "") {
  return "{topology: {kind: fat_tree, k: 4, rate: 100 Gbps}, host: single_nic, compute: a100_80gb" + more +
         "}";
}

// A job of `ranks` GPUs, of the 16 that the cluster has.
std::string job(const std::string& name, std::uint32_t ranks, const std::string& more = "", int repeat = 2) {
  return fmt::format(
      "  - {{name: {}, workload: {{kind: collective, collective: all_reduce, bytes: 64 kB, ranks: {}, "
      "repeat: "
      "{}}}{}}}\n",
      name, ranks, repeat, more.empty() ? "" : ", " + more);
}

struct Queued {
  explicit Queued(const std::string& entries) { std::ofstream(path) << "jobs:\n" << entries; }
  SimulationSetup setup(const std::string& configuration, std::uint32_t threads) const {
    SimulationSetup setup;
    setup.config = parse_config(configuration, "cluster.yaml");
    setup.workload = path;
    setup.threads = threads;
    return setup;
  }
  Results run(const std::string& configuration = cluster(), const Watch& watch = {},
              std::uint32_t threads = 1) const {
    return Simulation(setup(configuration, threads)).run(watch);
  }
  test::Directory directory;
  std::string path = directory.path() + "/jobs.yaml";
};

// Expects that no GPU has two jobs at a time. A job that is not done keeps its GPUs.
void expect_one_job_a_gpu(const Results& results) {
  for (std::size_t a = 0; a < results.jobs.size(); ++a) {
    for (std::size_t b = a + 1; b < results.jobs.size(); ++b) {
      const JobResult &one = results.jobs[a], &other = results.jobs[b];
      if (!one.begun || !other.begun || one.begin >= other.end || other.begin >= one.end) continue;
      for (const std::uint32_t gpu : one.gpus)
        EXPECT_THAT(other.gpus, Not(Contains(gpu))) << one.name << " and " << other.name;
    }
  }
}

TEST(QueuedJobs, TheThirdOfThreeGetsTheGpusOfTheFirstThatEnds) {
  const Queued queued(job("one", 8, "", 4) + job("two", 8) + job("three", 8));
  const Results results = queued.run();
  ASSERT_EQ(results.outcome, Outcome::done);
  const JobResult &one = results.jobs.at(0), &two = results.jobs.at(1), &three = results.jobs.at(2);
  EXPECT_EQ(one.begin, 0);
  EXPECT_EQ(two.begin, 0);
  EXPECT_EQ(three.arrival, 0);
  ASSERT_LT(two.end, one.end);
  EXPECT_EQ(three.gpus, two.gpus);
  EXPECT_EQ(three.begin, (two.end / kMicrosecond + 1) * kMicrosecond);
  EXPECT_EQ(three.queued(), three.begin);
  EXPECT_EQ(one.queued(), 0);
  EXPECT_GT(three.end, three.begin);
  expect_one_job_a_gpu(results);
  EXPECT_THAT(results.notes, Contains(AllOf(HasSubstr("1 of 3 waited for GPUs"), HasSubstr("'three'"))));
}

TEST(QueuedJobs, ATaskCountsItsEarliestStartFromTheBegin) {
  const Queued queued(job("one", 16) +
                      "  - {name: two, workload: {kind: flows, ranks: 2, flows: [{from: 0, to: 1, bytes: 1 "
                      "kB, start: 70 us}]}}\n");
  const Results results = queued.run();
  ASSERT_EQ(results.outcome, Outcome::done);
  EXPECT_GT(results.jobs.at(1).begin, 0);
  EXPECT_GT(results.jobs.at(1).end, results.jobs.at(1).begin + 70 * kMicrosecond);
}

TEST(QueuedJobs, NobodyOvertakes) {
  const Queued queued(job("one", 8) + job("all", 16, "arrival: 1 us") + job("small", 4, "arrival: 2 us") +
                      job("early", 4));
  const Results results = queued.run();
  ASSERT_EQ(results.outcome, Outcome::done);
  EXPECT_EQ(results.jobs.at(3).begin, 0) << "it arrives before those above it";
  EXPECT_GE(results.jobs.at(1).begin, std::max(results.jobs.at(0).end, results.jobs.at(3).end));
  EXPECT_GE(results.jobs.at(2).begin, results.jobs.at(1).end) << "it would fit, but came later";
  expect_one_job_a_gpu(results);
}

TEST(QueuedJobs, OneThatArrivesAfterAnEndBeginsAtOnce) {
  const Results results = Queued(job("one", 16) + job("two", 16, "arrival: 123456789 ns")).run();
  ASSERT_EQ(results.outcome, Outcome::done);
  EXPECT_EQ(results.jobs.at(1).begin, 123456789 * kNanosecond);
  EXPECT_EQ(results.jobs.at(1).queued(), 0);
}

TEST(QueuedJobs, BeginAtASchedulingInterval) {
  const Queued queued(job("one", 16) + job("two", 16));
  const Results results = queued.run(cluster(", scheduling: {interval: 37 us}"));
  ASSERT_EQ(results.outcome, Outcome::done);
  const Time interval = 37 * kMicrosecond;
  EXPECT_EQ(results.jobs.at(1).begin, (results.jobs.at(0).end / interval + 1) * interval);
  for (const std::string& note : results.notes) EXPECT_THAT(note, Not(HasSubstr("scheduling.interval")));
}

TEST(QueuedJobs, AreNoneWhereAllFitTogether) {
  const Queued fitting(job("one", 8) + job("two", 8, "arrival: 5 us"));
  const Results plain = fitting.run(), with = fitting.run(cluster(", scheduling: {interval: 37 us}"));
  EXPECT_FALSE(Simulation(fitting.setup(cluster(), 1)).has_queue());
  EXPECT_EQ(plain.fingerprints.results, with.fingerprints.results);
  EXPECT_EQ(plain.fingerprints.events, with.fingerprints.events);
  EXPECT_THAT(with.notes, Contains(HasSubstr("scheduling.interval changes nothing")));
}

// Jobs of random sizes, arrivals and placements.
std::string random_jobs(std::uint64_t seed) {
  RandomStream random(seed, "jobs");
  std::string entries;
  for (int number = 0; number < 9; ++number) {
    const auto ranks = static_cast<std::uint32_t>(2 + random.below(11));
    const char* placement = std::array{"packed", "random", "spread"}[random.below(3)];
    entries += job(fmt::format("job{}", number), ranks,
                   fmt::format("arrival: {} us, placement: {{kind: {}}}", random.below(60), placement),
                   1 + static_cast<int>(random.below(3)));
  }
  return entries;
}

TEST(QueuedJobs, NeverShareAGpuAndBeginInOrder) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Results results = Queued(random_jobs(seed)).run();
    ASSERT_EQ(results.outcome, Outcome::done) << seed;
    expect_one_job_a_gpu(results);
    std::stable_sort(results.jobs.begin(), results.jobs.end(),
                     [](const JobResult& a, const JobResult& b) { return a.arrival < b.arrival; });
    EXPECT_TRUE(std::is_sorted(results.jobs.begin(), results.jobs.end(),
                               [](const JobResult& a, const JobResult& b) { return a.begin < b.begin; }));
  }
}

TEST(QueuedJobThreads, DoNotShowInAnyNumberOfSets) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Queued queued(random_jobs(seed));
    const Results one = queued.run(cluster(", engine: {sets: 1}"));
    ASSERT_EQ(one.outcome, Outcome::done);
    for (const std::uint32_t threads : {1U, 2U, 4U}) {
      for (const int sets : {2, 3, 8}) {
        const Results other = queued.run(cluster(fmt::format(", engine: {{sets: {}}}", sets)), {}, threads);
        EXPECT_EQ(one.fingerprints.results, other.fingerprints.results) << threads << " " << sets;
        EXPECT_EQ(one.fingerprints.packets, other.fingerprints.packets) << threads << " " << sets;
        for (std::size_t job = 0; job < one.jobs.size(); ++job)
          EXPECT_EQ(one.jobs[job].begin, other.jobs.at(job).begin) << threads << " " << sets;
      }
    }
  }
}

TEST(QueuedJobs, OneThatCanNeverFitIsAnErrorThatNamesIt) {
  const auto refusal = [](const std::string& entries) -> std::string {
    try {
      Queued(entries).run();
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string large =
      "  - {name: two, workload: {kind: ptdp, model: {layers: 2, hidden: 512, heads: 8, sequence: 128, "
      "vocabulary: 1024}, parallel: {data: 17}}}\n";
  EXPECT_THAT(refusal(job("one", 16) + large),
              AllOf(HasSubstr("jobs.yaml: "), HasSubstr("job 'two': the workload has 17 ranks"),
                    HasSubstr("only 16 GPUs")));
  EXPECT_THAT(refusal(job("one", 16) + job("two", 8, "placement: {kind: packt}")),
              HasSubstr("did you mean 'packed'"));
}

TEST(QueuedJobs, AStallNamesThemAndWhatTheyWaitFor) {
  const Queued queued(job("one", 8, "", 100) + job("two", 12, "arrival: 3 us") +
                      job("three", 2, "arrival: 4 us"));
  const Results results =
      queued.run(cluster(", gpus: {failures: [{host: host1, at: 20 us}, {host: host15, at: 20 us}]}"));
  ASSERT_EQ(results.outcome, Outcome::stalled);
  EXPECT_THAT(results.waiting,
              Contains(AllOf(HasSubstr("two: waits in the queue since"), HasSubstr("for 12 GPUs"),
                             HasSubstr("7 of 16 are free, and 2 are on failed hosts"))));
  EXPECT_THAT(results.waiting,
              Contains(AllOf(HasSubstr("three: waits in the queue"), HasSubstr("behind two"))));
  EXPECT_TRUE(results.jobs.at(1).waits);
  EXPECT_FALSE(results.jobs.at(1).begun);
}

TEST(QueuedJobs, MayStillWaitWhenTheRunIsCut) {
  const Queued queued(job("one", 16, "", 50) + job("two", 16, "arrival: 2 us") +
                      job("three", 16, "arrival: 1 s"));
  Watch watch;
  watch.until = 20 * kMicrosecond;
  const Results results = queued.run(cluster(), watch);
  EXPECT_EQ(results.outcome, Outcome::limit);
  EXPECT_TRUE(results.jobs.at(1).waits);
  EXPECT_EQ(results.jobs.at(1).queued(), 18 * kMicrosecond);
  EXPECT_FALSE(results.jobs.at(2).waits);
  EXPECT_EQ(results.jobs.at(2).queued(), 0);
}

TEST(QueuedJobs, ReadTheGpusOfTheirBeginInTheCriticalPath) {
  const Queued queued(job("one", 8) + job("two", 16) + job("three", 4, "placement: {kind: random}"));
  const Results results = queued.run(cluster(", output: {critical_path: true}"));
  ASSERT_EQ(results.outcome, Outcome::done);
  for (const JobResult& result : results.jobs) {
    ASSERT_FALSE(result.path_pairs.empty()) << result.name;
    for (const PathPair& pair : result.path_pairs) {
      EXPECT_THAT(result.gpus, Contains(pair.source)) << result.name;
      EXPECT_THAT(result.gpus, Contains(pair.destination)) << result.name;
    }
  }
}

// ---- Failures

std::string training(const std::string& name) {
  return "  - {name: " + name +
         ", workload: {kind: ptdp, model: {layers: 2, hidden: 512, heads: 8, sequence: 128, vocabulary: "
         "1024}, parallel: {data: 4}, optimizer: distributed_adam, iterations: 9, checkpoint: {every: 2, "
         "piece: 1 MB}, recovery: {detection: 3 ms, restart: 20 ms}}}\n";
}

// Five GPUs for two jobs of four. The first goes on with the fifth when a host fails, which stays out of use.
// Two threads give the same run.
TEST(QueuedJobThreads, DoNotShowWhereAHostFails) {
  const Queued queued(training("one") + training("two"));
  const auto run = [&](const std::string& failures, std::uint32_t threads) {
    return queued.run(
        fmt::format("{{topology: {{kind: star, hosts: 8, rate: 100 Gbps}}, hosts: [{{kind: storage_server, "
                    "count: 1, nics: 1}}, {{kind: single_nic, count: 5}}], compute: h100_sxm, network: "
                    "{{switch: {{marker: none}}}}, gpus: {{failures: [{}]}}, engine: {{sets: {}}}}}",
                    failures, threads > 1 ? 3 : 1),
        {}, threads);
  };
  const Results whole = run("", 1);
  ASSERT_EQ(whole.outcome, Outcome::done);
  EXPECT_EQ(whole.jobs.at(1).gpus, whole.jobs.at(0).gpus);
  const std::uint32_t failed = whole.jobs.at(0).gpus.at(1);
  const std::vector<Time>& ends = whole.jobs.at(0).iteration_ends;
  const std::string failure = fmt::format("{{host: host2, at: {} ps}}", (ends.at(4) + ends.at(5)) / 2);
  const Results results = run(failure, 1);
  ASSERT_EQ(results.outcome, Outcome::done);
  ASSERT_EQ(results.jobs.size(), 3U);
  const JobResult &two = results.jobs[1], &rest = results.jobs[2];
  EXPECT_EQ(rest.name, "one, restart 1");
  EXPECT_THAT(rest.gpus, Not(Contains(failed)));
  EXPECT_THAT(two.gpus, Not(Contains(failed)));
  EXPECT_GT(two.begin, rest.end);
  EXPECT_EQ(two.iteration_ends.size(), 9U);
  EXPECT_EQ(run(failure, 2).fingerprints.results, results.fingerprints.results);
}

// ---- The shipped list

TEST(QueuedJobs, TheShippedListRuns) {
  SimulationSetup setup;
  setup.config = load_config(source_directory() + "/configs/jobs/queue.yaml");
  setup.workload = source_directory() + "/configs/jobs/queued_jobs.yaml";
  const Results results = Simulation(std::move(setup)).run({});
  ASSERT_EQ(results.outcome, Outcome::done);
  expect_one_job_a_gpu(results);
  EXPECT_GT(std::count_if(results.jobs.begin(), results.jobs.end(),
                          [](const JobResult& job) { return job.queued() > 0; }),
            1);
}

}  // namespace
}  // namespace netsim::queued_jobs_test
