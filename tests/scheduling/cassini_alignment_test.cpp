// Are the iterations of jobs that share links shifted, aligned again and left alone as CASSINI says? Does the
// job scheduler choose the placement with the best score?
#include "sim/scheduling/job/cassini_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/registry.h"

namespace netsim::cassini_alignment_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Phase = JobState::Phase;

constexpr Time kMs = kMillisecond;

// Phases of a job that computes for half of its 40 ms and then communicates at the full rate of each link.
IterationPhases half(std::vector<PortId> ports) {
  IterationPhases phases{40 * kMs, false, {}};
  for (const PortId port : ports)
    phases.links.push_back({port, 100 * kGbps, {{20 * kMs, 40 * kMs, 100 * kGbps}}});
  return phases;
}

// A view of jobs that the test sets, and the decisions about them.
class FakeJobs final : public JobDecisions, public ClusterFacts {
 public:
  void add(IterationPhases phases, Time began = 0, Phase phase = Phase::running) {
    phases_.push_back(std::move(phases));
    JobState& job = jobs.emplace_back();
    job.job = static_cast<std::uint32_t>(jobs.size() - 1);
    job.phase = phase;
    job.ranks = 2;
    job.iteration_began = began;
    job.name = names_[jobs.size() - 1];
  }
  const std::vector<JobState>& states() {
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].phases = jobs[i].waits() ? nullptr : &phases_[i];
    return jobs;
  }
  bool start(JobId job) override { return start(job, {}); }
  bool start(JobId job, const std::vector<GpuId>& gpus) override {
    started.emplace_back(job, gpus);
    return true;
  }
  bool would_fit(std::span<const JobId>, std::span<const JobId>) const override { return true; }
  void pause(JobId) override {}
  void shift(JobId job, Time by) override { shifts.emplace_back(job, by); }
  void set_traffic(JobId, std::uint8_t, std::uint8_t) override {}
  std::vector<std::vector<GpuId>> candidates(JobId, std::uint32_t) const override { return {{0, 1}, {2, 3}}; }
  // The first candidate crosses port 1, the second one port 2.
  IterationPhases phases_on(JobId, const std::vector<GpuId>& gpus) const override {
    return half({gpus.front() == 0 ? 1U : 2U});
  }

  std::vector<JobState> jobs;
  std::vector<std::pair<JobId, Time>> shifts;
  std::vector<std::pair<JobId, std::vector<GpuId>>> started;

 private:
  std::vector<IterationPhases> phases_;
  const char* names_[4] = {"a", "b", "c", "d"};
};

CassiniAlignment alignment() { return CassiniAlignment({}); }

TEST(CassiniAlignment, ShiftsOneOfTwoEqualJobsByHalfAnIteration) {
  FakeJobs run;
  run.add(half({7}));
  run.add(half({7}));
  CassiniAlignment own = alignment();
  own.align(kMs, run.states(), run);
  EXPECT_THAT(run.shifts, ElementsAre(std::pair{JobId(1), 20 * kMs}));
  run.shifts.clear();
  run.jobs[1].iteration_began = 20 * kMs;
  own.align(21 * kMs, run.states(), run);
  EXPECT_THAT(run.shifts, IsEmpty()) << "it is aligned";
}

TEST(CassiniAlignment, AlignsAgainBeyondTheToleranceOnly) {
  for (const auto& [off, delay] : {std::pair<Time, Time>{1, 0}, {-1, 0}, {-5, 5}, {5, 35}}) {
    FakeJobs run;
    run.add(half({7}));
    run.add(half({7}), (20 + off) * kMs);
    alignment().align(30 * kMs, run.states(), run);
    if (delay == 0) {
      EXPECT_THAT(run.shifts, IsEmpty()) << off;
    } else {
      EXPECT_THAT(run.shifts, ElementsAre(std::pair{JobId(1), delay * kMs})) << off;
    }
  }
}

// All jobs being late alike is no reason to align them.
TEST(CassiniAlignment, FollowsTheJobThatIsNeverShifted) {
  FakeJobs run;
  run.add(half({7}));
  run.add(half({7}), 20 * kMs);
  CassiniAlignment own = alignment();
  own.align(30 * kMs, run.states(), run);
  run.jobs[0].iteration_began = 53 * kMs;
  run.jobs[1].iteration_began = 73 * kMs;
  run.jobs[0].iterations_done = run.jobs[1].iterations_done = 1;
  own.align(74 * kMs, run.states(), run);
  EXPECT_THAT(run.shifts, IsEmpty());
}

TEST(CassiniAlignment, WaitsWhileAJobIsHeldOrLate) {
  FakeJobs run;
  run.add(half({7}));
  run.add(half({7}), 0, Phase::moving);
  CassiniAlignment own = alignment();
  own.align(kMs, run.states(), run);
  EXPECT_THAT(run.shifts, IsEmpty()) << "job 1 is held";
  run.jobs[1].phase = Phase::running;
  own.align(41 * kMs, run.states(), run);
  EXPECT_THAT(run.shifts, IsEmpty()) << "the first job's iteration is not over after 41 ms";
}

// Port 1 joins jobs 0 and 1, and port 2 joins jobs 1 and 2. Jobs 0 and 2 may communicate at the same time.
TEST(CassiniAlignment, ShiftsThreeJobsOnTwoLinks) {
  FakeJobs run;
  run.add(half({1}));
  run.add(half({1, 2}));
  run.add(half({2}));
  alignment().align(kMs, run.states(), run);
  EXPECT_THAT(run.shifts, ElementsAre(std::pair{JobId(1), 20 * kMs}));
}

TEST(CassiniAlignment, LeavesALoopAloneAndSaysSo) {
  FakeJobs run;
  run.add(half({1, 3}));
  run.add(half({1, 2}));
  run.add(half({2, 3}));
  CassiniAlignment own = alignment();
  own.align(kMs, run.states(), run);
  EXPECT_THAT(run.shifts, IsEmpty());
  EXPECT_THAT(own.notes(), ElementsAre(HasSubstr("jobs 'a', 'b', 'c': they share links in a loop")));
}

// When job 2 has ended, jobs 0 and 1 are no loop any more.
TEST(CassiniAlignment, FindsTheGroupsAnewWhenAJobEnds) {
  FakeJobs run;
  run.add(half({1, 3}));
  run.add(half({1, 2}));
  run.add(half({2, 3}));
  CassiniAlignment own = alignment();
  own.align(kMs, run.states(), run);
  run.jobs.pop_back();
  own.align(2 * kMs, run.states(), run);
  EXPECT_THAT(run.shifts, ElementsAre(std::pair{JobId(1), 20 * kMs}));
}

// With 20 ms of 40 and of 60 the score is 0.833 whatever the shift (schedulers.md, B5).
TEST(CassiniAlignment, DoesNotDelayWhatCannotImprove) {
  FakeJobs run;
  run.add({40 * kMs, false, {{7, 100 * kGbps, {{20 * kMs, 40 * kMs, 100 * kGbps}}}}});
  run.add({60 * kMs, false, {{7, 100 * kGbps, {{40 * kMs, 60 * kMs, 100 * kGbps}}}}}, 7 * kMs);
  alignment().align(8 * kMs, run.states(), run);
  EXPECT_THAT(run.shifts, IsEmpty());
}

TEST(SharedLinks, LetsPhasesBeginEarlierByTheMargin) {
  const IterationPhases a = half({1});
  const std::vector<SharedLink> links = shared_links({{0, &a}, {1, &a}}, {{}, 0.1, 0.05});
  EXPECT_EQ(links.at(0).demands.at(1).arcs.at(0).begin, 16 * kMs);
  EXPECT_EQ(links.at(0).demands.at(1).arcs.at(0).end, 40 * kMs);
}

TEST(SharedLinks, CountsLinksOfTheSameJobsOnceAndLeavesOutFreeOnes) {
  const IterationPhases a = half({1, 2, 3}), b = half({1, 2});
  IterationPhases c = half({3});
  c.links[0].capacity = 200 * kGbps;
  EXPECT_EQ(shared_links({{1, &b}, {0, &a}}, {}).size(), 1U);
  EXPECT_EQ(shared_links({{1, &b}, {0, &a}}, {}).front().demands.front().job, JobId(0));
  EXPECT_THAT(shared_links({{0, &c}, {1, &c}}, {}), IsEmpty()) << "200 Gb/s are enough for both";
}

// Job 0 uses all of the link of port 1 all the time.
TEST(CassiniJobs, StartsAJobOnThePlacementWithTheBestScore) {
  FakeJobs run;
  IterationPhases busy{40 * kMs, false, {{1, 100 * kGbps, {{0, 40 * kMs, 100 * kGbps}}}}};
  run.add(busy);
  run.add({}, kNever, Phase::queued);
  const ClusterState cluster;
  const auto scheduler =
      Registry<JobScheduler>::instance().create(parse_config("{kind: cassini}", "jobs.yaml"), "");
  EXPECT_TRUE(scheduler->needs().pauses);
  EXPECT_GT(scheduler->needs().phases, 0);
  JobSchedulerView view{kMs, run.states(), cluster};
  view.facts = &run;
  scheduler->decide(view, run);
  EXPECT_THAT(run.started, ElementsAre(std::pair{JobId(1), std::vector<GpuId>{2, 3}}));
}

TEST(CassiniJobs, RefusesItselfAsItsOrder) {
  const ConfigNode node = parse_config("{kind: cassini, order: cassini}", "jobs.yaml");
  EXPECT_THROW(Registry<JobScheduler>::instance().create(node, ""), ConfigError);
}

}  // namespace
}  // namespace netsim::cassini_alignment_test
