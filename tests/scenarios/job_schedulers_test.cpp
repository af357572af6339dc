// Runs random traces of jobs under all job schedulers. No GPU has two jobs, and each job computes exactly as
// long as the trace says. Runs differ in nothing for any number of threads, and what ended is freed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/scheduling/job/job_scheduler.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/test_size.h"

namespace netsim::job_schedulers_test {
namespace {

// ShiftedJobs: starts all jobs, and shifts job 0 once, when its first iteration has ended.
class ShiftedJobs final : public JobScheduler {
 public:
  JobNeeds needs() const override { return {.iterations = true, .pauses = true, .views = {ViewField::jobs}}; }
  void decide(const JobSchedulerView& view, JobDecisions& decisions) override {
    for (const JobState& job : view.jobs) {
      if (job.waits()) decisions.start(job.job, {std::uint32_t{job.job}});
      if (shifted_ || job.job != 0 || job.iterations_done == 0) continue;
      decisions.shift(0, 500 * kMicrosecond);
      shifted_ = true;
    }
  }

 private:
  bool shifted_ = false;
};

const Registration<JobScheduler> kShiftedJobs{
    "test_shifted_jobs", "shifts the third iteration of the first job", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<ShiftedJobs>(); }};

// The shift is exact, and the job keeps its GPU meanwhile.
TEST(JobSchedulers, ShiftTheNextIterationByAnExactTime) {
  const test::Directory directory;
  SimulationSetup setup;
  setup.workload = directory.path() + "/jobs.yaml";
  std::ofstream(setup.workload.text())
      << "jobs:\n- {name: shifted, workload: {kind: busy, duration: 4 ms, iterations: 4}}\n"
         "- {name: other, workload: {kind: busy, duration: 4 ms, iterations: 4}}\n";
  setup.config = parse_config(
      "{topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}, host: single_nic, network: ideal, "
      "scheduling: {jobs: test_shifted_jobs}}",
      "cluster.yaml");
  const Results results = Simulation(std::move(setup)).run({});
  EXPECT_EQ(results.jobs[0].end, 4500 * kMicrosecond);
  EXPECT_EQ(results.jobs[0].iteration_ends[1], 2 * kMillisecond);
  EXPECT_EQ(results.jobs[0].iteration_ends[2], 3500 * kMicrosecond);
  EXPECT_EQ(results.jobs[0].pauses, 0U);
  EXPECT_EQ(results.jobs[1].end, 4 * kMillisecond);
  EXPECT_EQ(results.jobs[1].gpus, std::vector<GpuId>{1});
}

// ClassedJobs: starts all jobs in a class that a network of one class does not have.
class ClassedJobs final : public JobScheduler {
 public:
  void decide(const JobSchedulerView& view, JobDecisions& decisions) override {
    for (const JobState& job : view.jobs) {
      if (job.waits() && decisions.start(job.job)) decisions.set_traffic(job.job, 0, 2);
    }
  }
};

const Registration<JobScheduler> kClassedJobs{
    "test_classed_jobs", "gives all jobs class 2", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<ClassedJobs>(); }};

Results run_classed_jobs(const std::string& classes) {
  const test::Directory directory;
  SimulationSetup setup;
  setup.workload = directory.path() + "/jobs.yaml";
  std::ofstream(setup.workload.text())
      << "jobs:\n- {name: classed, workload: {kind: permutation, ranks: 2, shift: 1, bytes: 1 MB}}\n";
  setup.config = parse_config("{topology: {kind: star, hosts: 2}, host: single_nic, network: {switch: {" +
                                  classes + "}}, scheduling: {jobs: test_classed_jobs}}",
                              "cluster.yaml");
  return Simulation(std::move(setup)).run({});
}

TEST(JobSchedulers, AClassThatTheNetworkDoesNotHaveIsOneError) {
  try {
    run_classed_jobs("");
    FAIL() << "the network has one class";
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("cluster.yaml:1:"), std::string::npos) << text;
    EXPECT_NE(text.find("the job scheduler gives job 'classed' class 2, but the network has 1 data class"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("set network.switch.classes to 3"), std::string::npos) << text;
  }
  EXPECT_TRUE(run_classed_jobs("classes: 3").jobs[0].done);
}

struct TracedJob {
  std::uint32_t gpus = 0;
  Time duration = 0;
};

class JobTraces : public ::testing::TestWithParam<const char*> {
 protected:
  // Writes a trace of jobs on 1 to 64 GPUs, and returns them.
  std::vector<TracedJob> write_trace(std::size_t jobs) const {
    RandomStream draws(7, "job_schedulers_test");
    std::ofstream file(path_ + ".csv");
    file << "submitted_us,gpus,duration_us,deadline_us,weight\n";
    std::vector<TracedJob> all;
    std::uint64_t submitted = 0;
    for (std::size_t job = 0; job < jobs; ++job) {
      submitted += draws.below(1500);
      const TracedJob one{1U << draws.below(7), static_cast<Time>(500 + draws.below(10'000)) * kMicrosecond};
      file << fmt::format("{},{},{},{},{}\n", submitted, one.gpus, one.duration / kMicrosecond,
                          submitted + 1 + draws.below(40'000), 1 + draws.below(4));
      all.push_back(one);
    }
    std::ofstream(path_) << "jobs: {trace: " << path_ << ".csv, iteration: 700 us}\n";
    return all;
  }
  Results run(const std::string& scheduler, std::uint32_t sets = 1, std::uint32_t threads = 1,
              const std::string& views = "{}") const {
    SimulationSetup setup;
    setup.config = parse_config(
        fmt::format("{{topology: {{kind: star, hosts: 128, rate: 100 Gbps, delay: 1 us}}, host: single_nic, "
                    "network: ideal, engine: {{sets: {}}}, scheduling: {{jobs: {{kind: test_checked_jobs, "
                    "of: {}}}, views: {}}}}}",
                    sets, scheduler, views),
        "cluster.yaml");
    setup.workload = path_;
    setup.threads = threads;
    return Simulation(std::move(setup)).run({});
  }
  static void expect_same(const Results& one, const Results& other);

 private:
  test::Directory directory_;
  std::string path_ = directory_.path() + "/jobs.yaml";
};

TEST_P(JobTraces, GiveNoGpuTwiceAndConserveWork) {
  const std::vector<TracedJob> trace = write_trace(test::full_size() ? 1000 : 100);
  const Results results = run(GetParam());
  ASSERT_EQ(results.outcome, Outcome::done);
  ASSERT_EQ(results.jobs.size(), trace.size());
  std::uint32_t most = 0;
  for (const ClusterUse& use : results.uses) most = std::max(most, use.gpus_held);
  EXPECT_LE(most, 128U);
  EXPECT_EQ(results.uses.back().queued + results.uses.back().paused, 0U);
  for (std::size_t number = 0; number < trace.size(); ++number) {
    const JobResult& job = results.jobs[number];
    EXPECT_TRUE(job.done);
    EXPECT_EQ(job.tasks_done, job.tasks_total);
    EXPECT_EQ(job.gpus.size(), trace[number].gpus);
    for (const RankTimes& times : job.rank_times) EXPECT_EQ(times.compute, trace[number].duration);
    // Between an iteration's end and the pause, up to a scheduling interval of 1 us passes.
    const Time ran = job.held() - job.moved;
    EXPECT_GE(ran, trace[number].duration);
    EXPECT_LE(ran, trace[number].duration + kMicrosecond * job.pauses);
  }
}

using JobTraceThreads = JobTraces;
TEST_P(JobTraceThreads, DoNotShowInAnyNumberOfSets) {
  write_trace(30);
  for (const std::string views : {"{}", "{jobs: {age: 450 us, every: 100 us}, deadlines: {age: 2 ms}}"})
    expect_same(run(GetParam(), 1, 1, views), run(GetParam(), 8, 2, views));
}

void JobTraces::expect_same(const Results& one, const Results& other) {
  EXPECT_EQ(one.fingerprints.results, other.fingerprints.results);
  for (std::size_t job = 0; job < one.jobs.size(); ++job) {
    EXPECT_EQ(one.jobs[job].end, other.jobs[job].end);
    EXPECT_EQ(one.jobs[job].paused, other.jobs[job].paused);
    EXPECT_EQ(one.jobs[job].gpus, other.jobs[job].gpus);
  }
}

const auto kSchedulers =
    ::testing::Values("fifo", "{kind: fifo, backfill: true}", "srsf", "{kind: srsf, move: 300 us}",
                      "{kind: las, threshold: 0.02}", "sla");
INSTANTIATE_TEST_SUITE_P(All, JobTraces, kSchedulers);
INSTANTIATE_TEST_SUITE_P(All, JobTraceThreads, kSchedulers);

}  // namespace
}  // namespace netsim::job_schedulers_test
