// Do jobs that a scheduler pauses and moves survive failures of hosts? Random jobs and failures under several
// job schedulers: the costs add up, and runs do not depend on sets and threads.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/random.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/test_size.h"

namespace netsim::paused_failures_test {
namespace {

constexpr int kHosts = 6;  // host0 has the drives, the others a GPU each
constexpr int kRanks = 4;  // of each job
constexpr Time kDetection = 60 * kMicrosecond, kRestart = 300 * kMicrosecond, kMove = 200 * kMicrosecond;

struct Failure {
  int host;
  Time at;
};

struct TrainingJob {
  std::uint32_t iterations = 8;
  Time arrival = 0;
  bool asynchronous = false;
  bool saves = true;
  Time duration = 0;  // as the scheduler is told; 0: it is not
};

class PausedRun {
 public:
  explicit PausedRun(const std::vector<TrainingJob>& jobs) {
    std::ofstream file(path_);
    file << "jobs:\n";
    for (std::size_t number = 0; number < jobs.size(); ++number) {
      const TrainingJob& job = jobs[number];
      const std::string checkpoints = fmt::format(
          ", checkpoint: {{every: 2, asynchronous: {}, piece: 256 KB, write_rate: 30 Gbps}}, recovery: "
          "{{detection: {} ps, restart: {} ps}}",
          job.asynchronous, kDetection, kRestart);
      file << fmt::format(
          "  - {{name: job{}, arrival: {} ps{}, workload: {{kind: ptdp, model: {{layers: 1, hidden: 128, "
          "heads: "
          "4, sequence: 64, vocabulary: 256}}, parallel: {{data: {}}}, optimizer: distributed_adam, "
          "iterations: {}{}}}}}\n",
          number, job.arrival, job.duration > 0 ? fmt::format(", duration: {} ps", job.duration) : "", kRanks,
          job.iterations, job.saves ? checkpoints : "");
    }
  }
  Results run(const std::string& scheduler, const std::vector<Failure>& failures, std::uint32_t sets = 1,
              std::uint32_t threads = 1) const {
    std::string list;
    for (const Failure& failure : failures)
      list +=
          fmt::format("{}{{host: host{}, at: {} ps}}", list.empty() ? "" : ", ", failure.host, failure.at);
    SimulationSetup setup;
    setup.config = parse_config(
        fmt::format("{{topology: {{kind: star, hosts: 8, rate: 100 Gbps}}, hosts: [{{kind: storage_server, "
                    "count: 1, nics: 1}}, {{kind: single_nic, count: {}}}], compute: h100_sxm, network: "
                    "{{switch: {{marker: none}}}}, gpus: {{failures: [{}]}}, engine: {{sets: {}}}, "
                    "scheduling: {{jobs: {{kind: test_checked_jobs, hosts_fail: true, of: {}}}}}}}",
                    kHosts - 1, list, sets, scheduler),
        "cluster.yaml");
    setup.workload = path_;
    setup.threads = threads;
    return Simulation(std::move(setup)).run({});
  }

 private:
  test::Directory directory_;
  std::string path_ = directory_.path() + "/jobs.yaml";
};

// Returns the time that a job takes alone, with or without checkpoints.
Time time_alone(std::uint32_t iterations, bool saves = true) {
  static std::map<std::pair<std::uint32_t, bool>, Time> known;
  const auto [entry, added] = known.try_emplace({iterations, saves}, 0);
  if (added) entry->second = PausedRun({{iterations, 0, false, saves}}).run("fifo", {}).jobs.at(0).end;
  return entry->second;
}

std::string first_name(const std::string& name) { return name.substr(0, name.find(',')); }

// Checks the jobs that one job became: their iterations add up, and so do the costs of the last one.
void check_chain(const std::vector<const JobResult*>& chain, std::uint32_t iterations, bool asynchronous) {
  std::uint32_t left = iterations;
  Time waited = 0;
  for (const JobResult* job : chain) {
    EXPECT_LE(job->iterations.value(), left);
    EXPECT_EQ((left - job->iterations.value()) % 2, 0U) << "checkpoints are behind every second iteration";
    left = job->iterations.value();
    waited += job->paused + job->moved;
    EXPECT_EQ(job->done, job == chain.back()) << job->name;
    EXPECT_EQ(job->recovery.has_value(), job == chain.back() && (chain.size() > 1 || job->recovery))
        << job->name;
  }
  const JobResult& last = *chain.back();
  EXPECT_EQ(last.iteration_ends.size(), left);
  if (!last.recovery) return;
  const JobRecovery& r = *last.recovery;
  EXPECT_EQ(r.restarts + 1, chain.size());
  EXPECT_EQ(r.whole, last.end - chain.front()->begin);
  EXPECT_EQ(r.whole, r.useful() + r.lost + r.down + r.io + r.paused);
  EXPECT_GE(r.down, r.restarts * (kDetection + kRestart));
  for (const Time part : {r.lost, r.io, r.paused, r.useful()}) EXPECT_GE(part, 0);
  // A move that a failure interrupts counts as moved until the job is stopped, and as down since the failure.
  EXPECT_LE(r.paused, waited);
  EXPECT_GE(r.paused, waited - (r.restarts + 1) * kDetection);
  // After each restart, up to an iteration that was saved is not useful work of all ranks.
  const Time training = time_alone(iterations, false);
  EXPECT_GE(r.useful(), training - (r.restarts + 1) * training / iterations);
  if (!asynchronous) {
    EXPECT_LE(r.useful(), training + training / 10);
  }
}

void check_run(const Results& results, const std::vector<TrainingJob>& jobs) {
  ASSERT_EQ(results.outcome, Outcome::done);
  std::map<std::string, std::vector<const JobResult*>> chains;
  for (const JobResult& job : results.jobs) chains[first_name(job.name)].push_back(&job);
  ASSERT_EQ(chains.size(), jobs.size());
  for (std::size_t number = 0; number < jobs.size(); ++number)
    check_chain(chains.at("job" + std::to_string(number)), jobs[number].iterations,
                jobs[number].asynchronous);
}

void expect_same_runs(const Results& a, const Results& b) {
  EXPECT_EQ(a.fingerprints.results, b.fingerprints.results);
  EXPECT_EQ(a.fingerprints.packets, b.fingerprints.packets);
  ASSERT_EQ(a.jobs.size(), b.jobs.size());
  for (std::size_t job = 0; job < a.jobs.size(); ++job) {
    EXPECT_EQ(a.jobs[job].end, b.jobs[job].end);
    EXPECT_EQ(a.jobs[job].gpus, b.jobs[job].gpus);
    EXPECT_EQ(a.jobs[job].paused, b.jobs[job].paused);
    EXPECT_EQ(a.jobs[job].moved, b.jobs[job].moved);
    ASSERT_EQ(a.jobs[job].recovery.has_value(), b.jobs[job].recovery.has_value());
    if (!a.jobs[job].recovery) continue;
    EXPECT_EQ(a.jobs[job].recovery->lost, b.jobs[job].recovery->lost);
    EXPECT_EQ(a.jobs[job].recovery->paused, b.jobs[job].recovery->paused);
  }
}

const std::vector<std::string> kSchedulers{
    "{kind: srsf, move: 200 us}", "{kind: las, threshold: 0.002, move: 200 us}",
    "{kind: las, threshold: 0.0005, factor: 2, queues: 6}", "{kind: sla, move: 200 us}"};

// A long job runs when a short one comes, and is paused behind its next checkpoint. It goes on when the short
// one has ended.
struct LongAndShort {
  std::vector<TrainingJob> jobs{{40, 0, false, true, time_alone(40)},
                                {4, time_alone(40) / 4, false, true, time_alone(4)}};
  PausedRun run{jobs};
  Results whole = run.run("{kind: srsf, move: 200 us}", {});
};

TEST(PausedFailures, AnIdleHostDoesNotMatterToAPausedJob) {
  LongAndShort two;
  ASSERT_EQ(two.whole.jobs[0].pauses, 1U);
  ASSERT_EQ(two.whole.jobs[0].moved, kMove);
  // The short job runs on hosts 1 to 4 in the middle of the pause.
  const Time middle = (two.whole.jobs[1].begin + two.whole.jobs[1].end) / 2;
  const Results idle = two.run.run("{kind: srsf, move: 200 us}", {{5, middle}});
  check_run(idle, two.jobs);
  EXPECT_EQ(idle.jobs.size(), 2U);
  EXPECT_EQ(idle.jobs[0].end, two.whole.jobs[0].end);
  EXPECT_FALSE(idle.jobs[0].recovery.has_value());
  // The host of both fails: the short job restarts, and the paused one does not.
  const Results both = two.run.run("{kind: srsf, move: 200 us}", {{1, middle}});
  check_run(both, two.jobs);
  ASSERT_EQ(both.jobs.size(), 3U);
  EXPECT_EQ(both.jobs[2].name, "job1, restart 1");
  EXPECT_EQ(std::count(both.jobs[0].gpus.begin(), both.jobs[0].gpus.end(), two.whole.jobs[1].gpus.front()),
            0);
}

TEST(PausedFailures, LostTimeHasNoPause) {
  LongAndShort two;
  const JobResult& whole = two.whole.jobs[0];
  // The failure comes behind the pause, before the next checkpoint.
  const Time went_on = two.whole.jobs[1].end + kMove;
  const auto next = std::upper_bound(whole.iteration_ends.begin(), whole.iteration_ends.end(), went_on);
  const Time failed = (went_on + *next) / 2;
  const Results results =
      two.run.run("{kind: srsf, move: 200 us}", {{whole.gpus.front() == 0 ? 2 : 1, failed}});
  check_run(results, two.jobs);
  ASSERT_EQ(results.jobs.size(), 3U);
  const JobRecovery& recovery = *results.jobs[2].recovery;
  EXPECT_EQ(recovery.paused, whole.paused + whole.moved);
  // All since the checkpoint before the pause is lost, but the pause does not count.
  const std::uint32_t saved = two.jobs[0].iterations - results.jobs[2].iterations.value();
  const Time kept = whole.iteration_ends.at(saved - 1);
  EXPECT_LT(kept, two.whole.jobs[1].begin);
  EXPECT_EQ(recovery.lost, failed - kept - recovery.paused);
  EXPECT_EQ(recovery.down, kDetection + kRestart);
}

TEST(PausedFailures, AMoveThatAFailureInterruptsEndsThere) {
  LongAndShort two;
  const Time failed = two.whole.jobs[1].end + kMove / 4;
  const Results results = two.run.run("{kind: srsf, move: 200 us}", {{2, failed}});
  check_run(results, two.jobs);
  ASSERT_EQ(results.jobs.size(), 3U);
  EXPECT_EQ(results.jobs[2].name, "job0, restart 1");
  const JobRecovery& recovery = *results.jobs[2].recovery;
  EXPECT_EQ(results.jobs[0].end, failed + kDetection);
  EXPECT_EQ(results.jobs[0].paused + results.jobs[0].moved, recovery.paused + kDetection);
  EXPECT_EQ(recovery.down, kDetection + kRestart);
  EXPECT_EQ(results.jobs[2].begin, failed + kDetection + kRestart);
}

TEST(PausedFailureThreads, RandomFailuresAndPausesAddUp) {
  int restarts = 0;
  std::uint32_t pauses = 0, paused_rests = 0;
  const std::uint64_t cases = test::by_size<std::uint64_t>(200, 24, 8);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    RandomStream draws(seed, "failures and pauses");
    const std::string& scheduler = kSchedulers[seed % kSchedulers.size()];
    std::vector<TrainingJob> jobs;
    for (std::uint64_t job = 0, all = 2 + draws.below(2); job < all; ++job) {
      jobs.push_back({static_cast<std::uint32_t>(4 + 2 * draws.below(12)),
                      static_cast<Time>(draws.below(static_cast<std::uint64_t>(time_alone(20)))),
                      draws.below(3) == 0});
    }
    std::vector<Failure> failures;
    for (std::uint64_t i = 0, all = 1 + draws.below(2); i < all; ++i) {
      failures.push_back({static_cast<int>(1 + draws.below(kHosts - 1)),
                          static_cast<Time>(draws.below(static_cast<std::uint64_t>(2 * time_alone(20))))});
    }
    SCOPED_TRACE(
        fmt::format("seed {}, {}, host{} fails at {} ps", seed, scheduler, failures[0].host, failures[0].at));
    const PausedRun run(jobs);
    const Results one = run.run(scheduler, failures);
    check_run(one, jobs);
    for (std::size_t job = 0; job < one.jobs.size(); ++job) {
      pauses += one.jobs[job].pauses;
      if (job >= jobs.size()) paused_rests += one.jobs[job].pauses;
    }
    restarts += static_cast<int>(one.jobs.size() - jobs.size());
    const auto sets = static_cast<std::uint32_t>(2 + seed % 7);
    expect_same_runs(one, run.run(scheduler, failures, sets, 1 + sets / 2));
  }
  EXPECT_GT(restarts, static_cast<int>(cases / 2));
  EXPECT_GT(pauses, cases / 2);
  EXPECT_GT(paused_rests, 0U);
}

}  // namespace
}  // namespace netsim::paused_failures_test
