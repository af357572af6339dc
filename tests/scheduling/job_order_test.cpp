// Do the rules that job schedulers share start and pause the right jobs? Do the schedulers put jobs into the
// order of their rules?
#include "sim/scheduling/job/job_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/registry.h"

namespace netsim::job_order_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Phase = JobState::Phase;

// Starts jobs while GPUs are free, and notes what is decided.
class Cluster final : public JobDecisions {
 public:
  explicit Cluster(std::uint32_t gpus) { state.gpus = state.free = gpus; }
  void add(Phase phase, std::uint32_t ranks, Time iteration = kSecond, std::uint32_t iterations = 1) {
    JobState& job = jobs.emplace_back();
    job.job = static_cast<std::uint32_t>(jobs.size() - 1);
    job.phase = phase;
    job.ranks = ranks;
    job.iterations = iterations;
    job.iteration_time = iteration;
    if (!job.waits()) state.free -= ranks;
  }
  void decide(const std::string& scheduler, Time now = 0) {
    const ConfigNode node = parse_config(scheduler, "jobs.yaml");
    Registry<JobScheduler>::instance().create(node, "")->decide({now, jobs, state}, *this);
  }
  bool start(JobId job) override {
    if (jobs[job].ranks > state.free) return false;
    state.free -= jobs[job].ranks;
    started.push_back(job);
    return true;
  }
  bool start(JobId, const std::vector<GpuId>&) override { return false; }
  bool would_fit(std::span<const JobId>, std::span<const JobId>) const override { return true; }
  void pause(JobId job) override { paused.push_back(job); }
  void shift(JobId, Time) override {}
  void set_traffic(JobId, std::uint8_t, std::uint8_t) override {}

  ClusterState state;
  std::vector<JobState> jobs;
  std::vector<std::uint32_t> started, paused;
};

TEST(JobSchedulerRules, FifoWaitsBehindAJobThatDoesNotFitUnlessItBackfills) {
  for (const bool backfill : {false, true}) {
    Cluster cluster(10);
    for (const std::uint32_t ranks : {8U, 4U, 2U}) cluster.add(Phase::queued, ranks);
    cluster.decide(backfill ? "{kind: fifo, backfill: true}" : "fifo");
    if (backfill) {
      EXPECT_THAT(cluster.started, ElementsAre(0, 2));
    } else {
      EXPECT_THAT(cluster.started, ElementsAre(0));
    }
  }
}

TEST(JobSchedulerRules, SrsfCountsGpusAndRemainingIterations) {
  Cluster cluster(8);
  cluster.add(Phase::queued, 8, kSecond, 2);       // 16 GPU seconds
  cluster.add(Phase::queued, 4, kSecond, 3);       // 12
  cluster.add(Phase::queued, 2, 2 * kSecond, 10);  // 12: 7 of its iterations are done
  cluster.jobs[2].iterations_done = 7;
  cluster.decide("srsf");
  EXPECT_THAT(cluster.started, ElementsAre(1, 2));
}

TEST(JobSchedulerRules, SrsfPausesALongerJobOnlyWhereItMay) {
  for (const bool pauses : {false, true}) {
    Cluster cluster(8);
    cluster.add(Phase::running, 8, kSecond, 10);
    cluster.add(Phase::queued, 4, kSecond, 1);
    cluster.decide(pauses ? "srsf" : "{kind: srsf, pauses: false}");
    EXPECT_THAT(cluster.started, IsEmpty());
    EXPECT_EQ(cluster.paused.size(), pauses ? 1U : 0U);
  }
}

TEST(JobSchedulerRules, AJobThatAlreadyPausesIsNotPausedAgain) {
  Cluster cluster(8);
  cluster.add(Phase::pausing, 8, kSecond, 10);
  cluster.add(Phase::queued, 4, kSecond, 1);
  cluster.decide("srsf");
  EXPECT_THAT(cluster.paused, IsEmpty());
}

TEST(JobSchedulerRules, LasServesTheFirstQueueInOrderOfBegins) {
  Cluster cluster(1);
  for (int job = 0; job < 4; ++job) cluster.add(Phase::paused, 1);
  const double held[] = {5000, 10, 20, 50'000};
  const Time started[] = {1, 9, 7, 2};
  for (int job = 0; job < 4; ++job) {
    cluster.jobs[job].gpu_seconds = held[job];
    cluster.jobs[job].started = started[job];
  }
  cluster.decide("las");
  EXPECT_THAT(cluster.started, ElementsAre(2)) << "job 2 began before job 1, and both are in the first queue";
}

TEST(JobSchedulerRules, SlaTakesTheModifiedDueDateByWeight) {
  Cluster cluster(1);
  for (int job = 0; job < 3; ++job) cluster.add(Phase::queued, 1);
  cluster.jobs[1].deadline = 10 * kSecond;
  cluster.jobs[2].deadline = 6 * kSecond;
  cluster.decide("sla", 2 * kSecond);
  EXPECT_THAT(cluster.started, ElementsAre(2));
  cluster.started.clear();
  cluster.state.free = 1;
  cluster.jobs[1].weight = 3;
  cluster.decide("sla", 2 * kSecond);
  EXPECT_THAT(cluster.started, ElementsAre(1)) << "8 s / 3 is less than 4 s";
}

TEST(JobSchedulerRules, UnknownTimesCountAsASecond) {
  JobState job;
  EXPECT_EQ(seconds_left(job), 1);
  job.iterations = 4;
  EXPECT_EQ(seconds_left(job), 4);
  job.iterations_done = 4;
  EXPECT_EQ(iterations_left(job), 1U);
}

}  // namespace
}  // namespace netsim::job_order_test
