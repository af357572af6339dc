// Does a job scheduler move the cheapest running jobs where free GPUs do not lie together, and only if it
// gains?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/scheduling/job/job_scheduler.h"

namespace netsim::defragmentation_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Phase = JobState::Phase;

// Three running jobs with 100 iterations of a second, and one of two ranks that waits. Two GPUs are free, but
// not together. The job fits without job 0, which has two ranks, or without job 2, which has one.
class Cluster final : public JobDecisions {
 public:
  explicit Cluster(const std::string& scheduler)
      : scheduler_(Registry<JobScheduler>::instance().create(parse_config(scheduler, "jobs.yaml"), "")) {
    state_.gpus = 6;
    state_.free = 2;
    for (const std::uint32_t ranks : {2U, 1U, 1U}) add(Phase::running, ranks, 100);
    add(Phase::queued, 2, 1);
  }
  void decide() {
    started.clear();
    paused.clear();
    scheduler_->decide({0, jobs, state_}, *this);
  }
  bool start(JobId job) override {
    if (job == 3 && !fits_) return false;
    started.push_back(job);
    return true;
  }
  bool start(JobId, const std::vector<GpuId>&) override { return false; }
  bool would_fit(std::span<const JobId> placed, std::span<const JobId> without) const override {
    EXPECT_EQ(placed.front(), JobId(3));
    return fits_ || std::any_of(without.begin(), without.end(),
                                [](JobId job) { return job == JobId(0) || job == JobId(2); });
  }
  void pause(JobId job) override { paused.push_back(job); }
  void shift(JobId, Time) override {}
  void set_traffic(JobId, std::uint8_t, std::uint8_t) override {}
  // Ends the iteration of a job that pauses.
  void rest(std::uint32_t job) {
    jobs[job].phase = Phase::paused;
    state_.free += jobs[job].ranks;
    fits_ = true;
  }

  std::vector<JobState> jobs;
  std::vector<std::uint32_t> started, paused;

 private:
  void add(Phase phase, std::uint32_t ranks, std::uint32_t iterations) {
    JobState& job = jobs.emplace_back();
    job.job = static_cast<std::uint32_t>(jobs.size() - 1);
    job.phase = phase;
    job.ranks = ranks;
    job.iterations = iterations;
    job.iteration_time = kSecond;
  }

  std::unique_ptr<JobScheduler> scheduler_;
  ClusterState state_;
  bool fits_ = false;
};

TEST(Defragmentation, MovesTheCheapestJobAndStartsBothWhenItRests) {
  Cluster cluster("{kind: srsf, pauses: false, defragment: true}");
  cluster.decide();
  EXPECT_THAT(cluster.paused, ElementsAre(2));
  EXPECT_THAT(cluster.started, IsEmpty());
  cluster.jobs[2].phase = Phase::pausing;
  cluster.decide();
  EXPECT_THAT(cluster.paused, IsEmpty());
  EXPECT_THAT(cluster.started, IsEmpty());
  cluster.rest(2);
  cluster.decide();
  EXPECT_THAT(cluster.started, ElementsAre(3, 2));
}

// The job waits for 100 s and so gains 2 x 99 GPU seconds. A move of 200 s costs more, one of 190 s less.
TEST(Defragmentation, MovesOnlyIfItGains) {
  Cluster dear("{kind: las, move: 200 s, defragment: true}");
  dear.decide();
  EXPECT_THAT(dear.paused, IsEmpty());
  Cluster cheap("{kind: las, move: 190 s, defragment: true}");
  cheap.decide();
  EXPECT_THAT(cheap.paused, ElementsAre(2));
}

TEST(Defragmentation, IsOffByDefault) {
  for (const char* scheduler : {"srsf", "las", "sla"}) {
    Cluster cluster(scheduler);
    cluster.decide();
    EXPECT_THAT(cluster.paused, IsEmpty());
  }
}

}  // namespace
}  // namespace netsim::defragmentation_test
