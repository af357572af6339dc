// Tests hosts that fail. A job resumes from its last checkpoint after the given times, on a spare host or on
// the same one. Tests also what it loses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/text.h"
#include "sim/report/fault_list.h"
#include "sim/report/summary.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"

namespace netsim::failures_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Writing a checkpoint is an incast. Senders that it makes slower would train more slowly afterwards, which
// is useful time and no wait for storage.
constexpr const char* kNoMarks = "network: {switch: {marker: none}}";

struct Failing {
  explicit Failing(const std::string& more) {
    std::ofstream(path)
        << "{kind: ptdp, name: gpt, model: {layers: 2, hidden: 512, heads: 8, sequence: 128, "
           "vocabulary: 1024}, parallel: {data: 4}, optimizer: distributed_adam, iterations: 9"
        << more << "}";
  }
  Results run(const std::string& failures, std::uint32_t threads = 1, int hosts = 5) {
    SimulationSetup setup;
    setup.config = parse_config(
        fmt::format(
            "{{topology: {{kind: star, hosts: 8, rate: 100 Gbps}}, hosts: [{{kind: storage_server, count: 1, "
            "nics: 1}}, {{kind: single_nic, count: {}}}], compute: h100_sxm, {}, gpus: {{failures: [{}]}}, "
            "engine: {{sets: {}}}}}",
            hosts, kNoMarks, failures, threads > 1 ? 3 : 1),
        "cluster.yaml");
    setup.workload = path;
    setup.threads = threads;
    Simulation simulation(std::move(setup));
    Results results = simulation.run({});
    placements.clear();
    for (std::uint32_t job = 0; job < simulation.jobs(); ++job)
      placements.push_back(simulation.placement(job));
    return results;
  }
  test::Directory directory;
  std::string path = directory.path() + "/job.yaml";
  std::vector<std::vector<GpuId>> placements;
};

constexpr const char* kRecovers =
    ", checkpoint: {every: 2, piece: 1 MB}, recovery: {detection: 3 ms, restart: 20 ms}";

std::string at(Time time) { return fmt::format("{{host: host2, at: {} ps}}", time); }

// Fails in the middle of the sixth iteration: two checkpoints, four iterations, are there; five are left.
struct Middle {
  Middle() : job(kRecovers), whole(job.run("")) {
    const std::vector<Time>& ends = whole.jobs.at(0).iteration_ends;
    failure = (ends.at(4) + ends.at(5)) / 2;
  }
  Failing job;
  Results whole;
  Time failure = 0;
};

TEST(Failures, RollBackToTheLastCheckpoint) {
  Middle test;
  const Results results = test.job.run(at(test.failure));
  ASSERT_EQ(results.outcome, Outcome::done);
  ASSERT_EQ(results.jobs.size(), 2U);
  const JobResult &before = results.jobs[0], &rest = results.jobs[1];
  EXPECT_TRUE(before.stopped);
  EXPECT_FALSE(before.done);
  EXPECT_EQ(before.iteration_ends.size(), 5U);
  EXPECT_EQ(before.end, test.failure + 3 * kMillisecond);
  EXPECT_EQ(rest.name, "gpt, restart 1");
  EXPECT_TRUE(rest.done);
  EXPECT_EQ(rest.begin, test.failure + 23 * kMillisecond);
  EXPECT_EQ(rest.iterations, 5U);
  EXPECT_EQ(rest.iteration_ends.size(), 5U);
  // A spare host, GPU 5, takes the failed one's place. GPU 0 are the drives.
  EXPECT_THAT(test.job.placements[0], ElementsAre(1, 2, 3, 4, 0));
  EXPECT_THAT(test.job.placements[1], ElementsAre(1, 5, 3, 4, 0));
}

// The failure is among the faults of the run. It stopped the sixth iteration of the first job.
TEST(Failures, AreFaultsOfTheRun) {
  Middle test;
  const Results results = test.job.run(at(test.failure));
  EXPECT_THAT(fault_lines(results.faults, results.simulated),
              ElementsAre("host2: fails at " + human_seconds(to_seconds(test.failure))));
  const std::vector<FaultSpan> spans = fault_spans(results);
  ASSERT_EQ(spans.size(), 1U);
  ASSERT_EQ(spans[0].hits.size(), 1U);
  EXPECT_EQ(spans[0].hits[0].job, 0U);
  EXPECT_EQ(spans[0].hits[0].first, 5U);
  EXPECT_EQ(spans[0].hits[0].last, 5U);
}

// The useful work is nine iterations without their checkpoints.
TEST(Failures, CostWhatTheySay) {
  Middle test;
  const Results results = test.job.run(at(test.failure));
  const JobResult& whole = test.whole.jobs.at(0);
  ASSERT_TRUE(results.jobs[1].recovery);
  EXPECT_FALSE(results.jobs[0].recovery);
  const JobRecovery& recovery = *results.jobs[1].recovery;
  EXPECT_EQ(recovery.restarts, 1U);
  EXPECT_EQ(recovery.whole, results.jobs[1].end);
  EXPECT_EQ(recovery.lost, test.failure - whole.iteration_ends.at(3));
  EXPECT_EQ(recovery.down, 23 * kMillisecond);
  const Time training = Failing("").run("").jobs.at(0).end;
  EXPECT_NEAR(to_seconds(recovery.useful()), to_seconds(training), 0.05 * to_seconds(training));
  EXPECT_DOUBLE_EQ(recovery.goodput(), to_seconds(recovery.useful()) / to_seconds(recovery.whole));
  EXPECT_THAT(summary_json(results), HasSubstr("\"goodput\": 0."));
}

// All ranks read their data, from drives behind one NIC of 100 Gb/s, before the first begins.
TEST(Failures, ReadTheCheckpoint) {
  Middle test;
  const Results results = test.job.run(at(test.failure));
  const Bytes parameters = 2 * (12 * 512 * 512 + 13 * 512) + 1024 * 512 + 128 * 512 + 2 * 512;
  const Bytes read = 4 * (2 * parameters + 12 * parameters / 4);
  const auto& rest = results.jobs[1];
  const Time first = rest.iteration_ends.at(0) - rest.begin,
             second = rest.iteration_ends.at(2) - rest.iteration_ends.at(1);
  EXPECT_GE(first, second / 2 + read * 8 * (kSecond / (100 * kGbps)));
}

// Before the first checkpoint all is begun anew, and nothing read. Without spare hosts on the same one.
TEST(Failures, BeginAnewWhereNothingIsSaved) {
  Failing job(kRecovers);
  const Time first = job.run("").jobs.at(0).iteration_ends.at(0);
  const Results results = job.run(at(first / 2), 1, 4);
  ASSERT_EQ(results.jobs.size(), 2U);
  EXPECT_EQ(results.jobs[1].iterations, 9U);
  EXPECT_EQ(job.placements[0], job.placements[1]);
  EXPECT_EQ(results.jobs[1].iteration_ends.at(0) - results.jobs[1].begin, first);
}

TEST(Failures, MayComeAgain) {
  Middle test;
  const Results once = test.job.run(at(test.failure));
  const std::vector<Time>& ends = once.jobs[1].iteration_ends;
  const Time second = (ends.at(2) + ends.at(3)) / 2;
  const Results twice =
      test.job.run(at(test.failure) + fmt::format(", {{host: host3, at: {} ps}}", second), 1, 6);
  ASSERT_EQ(twice.outcome, Outcome::done);
  ASSERT_EQ(twice.jobs.size(), 3U);
  EXPECT_EQ(twice.jobs[2].name, "gpt, restart 2");
  EXPECT_EQ(twice.jobs[2].iterations, 3U);  // 4 and 2 are saved
  EXPECT_EQ(twice.jobs[2].recovery->restarts, 2U);
  EXPECT_EQ(twice.jobs[2].recovery->down, 46 * kMillisecond);
  EXPECT_EQ(twice.jobs[2].recovery->lost, once.jobs[1].recovery->lost + second - ends.at(1));
}

// The failed host has no rank, or fails after the end.
TEST(Failures, OfOtherHostsAreNothing) {
  Middle test;
  const Results spare = test.job.run(fmt::format("{{host: host5, at: {} ps}}", test.failure));
  EXPECT_EQ(spare.jobs.size(), 1U);
  EXPECT_EQ(spare.fingerprints.results, test.whole.fingerprints.results);
  const Results late = test.job.run(at(test.whole.simulated + kSecond));
  EXPECT_EQ(late.fingerprints.results, test.whole.fingerprints.results);
}

TEST(Failures, AreTheSameOnAllThreads) {
  Middle test;
  const Results one = test.job.run(at(test.failure)), three = test.job.run(at(test.failure), 3);
  EXPECT_EQ(one.fingerprints.results, three.fingerprints.results);
  EXPECT_EQ(one.fingerprints.packets, three.fingerprints.packets);
}

// A job without recovery waits for ever.
TEST(Failures, StallAJobThatCannotGoOn) {
  Failing job("");
  const Time end = job.run("").jobs.at(0).end;
  EXPECT_EQ(job.run(at(end / 2)).outcome, Outcome::stalled);
}

// ---- A job that arrives when its host has failed

Results arrive(const std::string& gpus, const std::string& workload, int hosts = 4) {
  const test::Directory directory;
  const std::string path = directory.path() + "/jobs.yaml";
  std::ofstream(path) << "{jobs: [{name: late, arrival: 5 ms, workload: " << workload << "}]}";
  SimulationSetup setup;
  setup.config = parse_config(
      fmt::format("{{topology: {{kind: star, hosts: 8, rate: 100 Gbps}}, compute: h100_sxm, hosts: [{{kind: "
                  "single_nic, count: {}}}, {{kind: storage_server, count: 1, nics: 1}}], gpus: {{failures: "
                  "[{}]}}}}",
                  hosts, gpus),
      "cluster.yaml");
  setup.workload = path;
  setup.threads = 1;
  return Simulation(std::move(setup)).run({});
}
constexpr const char* kPhases =
    "{kind: phases, ranks: 4, phases: [{compute: 1 ms}, {collective: all_reduce, bytes: 1 MB}]}";

// The other ranks wait for the failed one, and the first line of the report says why.
TEST(JobOnAFailedHost, StallsWithoutRecovery) {
  for (const char* time : {"0 ps", "1 ms", "5 ms", "5.5 ms"}) {
    SCOPED_TRACE(time);
    const Results results = arrive(fmt::format("{{host: host1, at: {}}}", time), kPhases);
    ASSERT_EQ(results.outcome, Outcome::stalled);
    EXPECT_EQ(
        results.waiting.at(0),
        fmt::format(
            "host1 failed at {}: rank 1 stops computing, and a job without `recovery` does not continue",
            time));
    EXPECT_THAT(results.waiting.at(1), HasSubstr("rank 0"));
    EXPECT_THAT(results.waiting.at(1), HasSubstr("waits for rank 1, which did not reach it"));
    for (const std::string& line : results.waiting) EXPECT_THAT(line, Not(HasSubstr("runs until")));
    // Nothing is computed there: 1 ms each at the others.
    const std::vector<RankTimes>& times = results.jobs.at(0).rank_times;
    EXPECT_EQ(times.at(0).compute, kMillisecond);
    EXPECT_EQ(times.at(1).compute, std::string(time) == "5.5 ms" ? kMillisecond / 2 : 0);
  }
}

// A failed host that the job is not on is nothing to it.
TEST(JobOnAFailedHost, IsAboutItsOwnHosts) {
  const Results results = arrive("{host: host4, at: 1 ms}", kPhases, 5);
  EXPECT_EQ(results.outcome, Outcome::done);
  EXPECT_EQ(results.jobs.size(), 1U);
}

// The failure is noticed 2 ms after the arrival, and the job begins 3 ms later, on the spare host or on the
// repaired one. It has lost nothing.
TEST(JobOnAFailedHost, RecoversFromItsArrivalOn) {
  const std::string job =
      "{kind: ptdp, model: {layers: 1, hidden: 128, heads: 4, sequence: 64, vocabulary: 256}, parallel: "
      "{data: "
      "4}, iterations: 2, checkpoint: {every: 1}, recovery: {detection: 2 ms, restart: 3 ms}}";
  for (const int hosts : {4, 5}) {
    const Results results = arrive("{host: host1, at: 1 ms}", job, hosts);
    ASSERT_EQ(results.outcome, Outcome::done);
    ASSERT_EQ(results.jobs.size(), 2U);
    EXPECT_EQ(results.jobs[0].begin, 5 * kMillisecond);
    EXPECT_EQ(results.jobs[1].begin, 10 * kMillisecond);
    EXPECT_EQ(results.jobs[1].recovery->down, 5 * kMillisecond);
    EXPECT_EQ(results.jobs[1].recovery->lost, 0);
    EXPECT_EQ(results.jobs[1].gpus.at(1), hosts == 4 ? 1U : 4U);
  }
}

// A job that is down when the run is cut is not done.
TEST(Failures, ADownJobIsNotDone) {
  Middle test;
  SimulationSetup setup;
  setup.config = parse_config(
      fmt::format(
          "{{topology: {{kind: star, hosts: 8, rate: 100 Gbps}}, hosts: [{{kind: storage_server, count: "
          "1, nics: 1}}, {{kind: single_nic, count: 4}}], compute: h100_sxm, {}, gpus: {{failures: "
          "[{}]}}}}",
          kNoMarks, at(test.failure)),
      "cluster.yaml");
  setup.workload = test.job.path;
  setup.threads = 1;
  Watch watch;
  watch.until = test.failure + 10 * kMillisecond;
  const Results results = Simulation(std::move(setup)).run(watch);
  EXPECT_EQ(results.outcome, Outcome::limit);
  EXPECT_FALSE(results.jobs.at(0).done);
  ASSERT_TRUE(results.jobs[0].recovery);
  EXPECT_EQ(results.jobs[0].recovery->restarts, 0U);
  EXPECT_EQ(results.jobs[0].recovery->lost, test.failure - test.whole.jobs.at(0).iteration_ends.at(3));
}

TEST(Failures, AreChecked) {
  Failing job("");
  const auto refusal = [&](const std::string& failures) -> std::string {
    try {
      job.run(failures);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("{host: host22, at: 1 s}"), HasSubstr("no host 'host22', did you mean 'host2'?"));
  EXPECT_THAT(refusal("{host: host2}"), HasSubstr("at"));
  Failing nothing(", recovery: {detection: 1 s, restart: 1 s}");
  EXPECT_THAT([&] { nothing.run(""); },
              ::testing::ThrowsMessage<Error>(HasSubstr("the job has no checkpoint to continue from")));
}

}  // namespace
}  // namespace netsim::failures_test
