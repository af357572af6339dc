#include "sim/report/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "tests/report/fixtures.h"

namespace netsim::results_test {
namespace {

using test::quantiles_of;
using test::two_rank_job;
using test::two_rank_results;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ReportFlowTimes, AreNearestRank) {
  std::vector<Time> times;
  for (Time t = 1; t <= 200; ++t) times.push_back(201 - t);
  const FlowTimes flows = flow_times(quantiles_of(times));
  EXPECT_EQ(flows.count, 200u);
  EXPECT_DOUBLE_EQ(flows.mean, 100.5);
  EXPECT_EQ(flows.p50, 100);
  EXPECT_EQ(flows.p99, 198);
  EXPECT_EQ(flows.maximum, 200);
}

// A Note compares the start-ups of added pieces with what they hide.
TEST(ReportNotes, NameCutsThatCostMoreThanTheyHide) {
  Results results = two_rank_results();
  const auto cost_note = Contains(AllOf(HasSubstr("costs more start-up than it hides"), HasSubstr("300 us"),
                                        HasSubstr("parallel.tensor_overlap")));
  JobResult& job = results.jobs.front();
  job.done = true;
  job.cuts = {600 * kMicrosecond, 600 * kMicrosecond, {"parallel.tensor_overlap"}};
  EXPECT_THAT(derive_notes(results), Not(cost_note));
  job.cuts.hidden -= 1;
  EXPECT_THAT(derive_notes(results), cost_note);
  job.cuts = {};
  EXPECT_THAT(derive_notes(results), Not(cost_note));
}

TEST(ReportFlowTimes, OfNothingAndOfOne) {
  EXPECT_EQ(flow_times(quantiles_of({})).count, 0u);
  EXPECT_EQ(flow_times(quantiles_of({})).maximum, 0);
  const FlowTimes one = flow_times(quantiles_of({7}));
  EXPECT_EQ(one.p50, 7);
  EXPECT_EQ(one.p99, 7);
  EXPECT_EQ(one.maximum, 7);
}

TEST(ReportFlowTimes, QuantilesAreTheSmallestValueThatEnoughDoNotExceed) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint16_t>& drawn) {
    RC_PRE(!drawn.empty());
    const std::vector<Time> times(drawn.begin(), drawn.end());
    const FlowTimes flows = flow_times(quantiles_of(times));
    const auto at_most = [&](Time value) {
      return std::count_if(times.begin(), times.end(), [&](Time t) { return t <= value; });
    };
    const auto n = static_cast<std::int64_t>(times.size());
    RC_ASSERT(100 * at_most(flows.p99) >= 99 * n);
    RC_ASSERT(100 * at_most(flows.p99 - 1) < 99 * n);
    RC_ASSERT(2 * at_most(flows.p50) >= n);
    RC_ASSERT(2 * at_most(flows.p50 - 1) < n);
    RC_ASSERT(flows.maximum == *std::max_element(times.begin(), times.end()));
  }));
}

TEST(ReportFlowTimes, DoNotDependOnTheOrderOfCompletion) {
  EXPECT_TRUE(rc::check([](std::vector<std::uint32_t> drawn) {
    std::vector<Time> times(drawn.begin(), drawn.end());
    const FlowTimes forward = flow_times(quantiles_of(times));
    std::reverse(times.begin(), times.end());
    RC_ASSERT(flow_times(quantiles_of(times)).mean == forward.mean);
  }));
}

TEST(ReportSlowdown, IsRoundedToMillionths) {
  FlowRecord flow;
  flow.start = 100;
  flow.end = 300;
  EXPECT_EQ(slowdown_millionths(flow), 0);  // unknown
  flow.ideal = 200;
  EXPECT_EQ(slowdown_millionths(flow), 1'000'000);
  flow.ideal = 60;
  EXPECT_EQ(slowdown_millionths(flow), 3'333'333);
  flow.ideal = 120;
  EXPECT_EQ(slowdown_millionths(flow), 1'666'667);
  flow.end = 100 + 1000 * kSecond;
  flow.ideal = kSecond;
  EXPECT_EQ(slowdown_millionths(flow), 1'000'000'000);
}

TEST(ReportSummary, IsPerIterationMeansOverRanks) {
  const JobSummary summary = summarise(two_rank_job());
  EXPECT_DOUBLE_EQ(*summary.jct_s, 4e-3);
  EXPECT_DOUBLE_EQ(*summary.iteration_time_s, 2e-3);
  EXPECT_DOUBLE_EQ(summary.compute_s, 1e-3);
  EXPECT_DOUBLE_EQ(summary.communication_s, 0.75e-3);
  EXPECT_DOUBLE_EQ(summary.exposed_s, 0.75e-3);
  EXPECT_DOUBLE_EQ(summary.idle_s, 0.25e-3);
  EXPECT_DOUBLE_EQ(summary.exposed_by_s[static_cast<std::size_t>(Stream::tp)], 0.25e-3);
  EXPECT_DOUBLE_EQ(summary.exposed_by_s[static_cast<std::size_t>(Stream::dp)], 0.5e-3);
  EXPECT_DOUBLE_EQ(summary.compute_s + summary.exposed_s + summary.idle_s, *summary.iteration_time_s);
  EXPECT_DOUBLE_EQ(*summary.tflops_per_gpu, 1e9 / 2e-3 / 2 * 1e-12);
}

// Rank 0 has done nothing of the warm-up when it ends, but is never idle in the job. That time is taken from
// its exposed time, so that no time is negative.
TEST(ReportSummary, TakesOffTheWarmUpAndNoTimeIsNegative) {
  JobResult job = two_rank_job();
  job.warm_up = 1;
  job.warm_up_times.resize(2);
  job.warm_up_times[0].idle = kMillisecond;
  job.warm_up_times[1] = {kMillisecond / 2, kMillisecond / 2, kMillisecond / 2, 0, {}};
  job.warm_up_times[1].exposed_by[static_cast<std::size_t>(Stream::dp)] = kMillisecond / 2;
  const JobSummary summary = summarise(job);
  EXPECT_DOUBLE_EQ(*summary.iteration_time_s, 3e-3);
  EXPECT_DOUBLE_EQ(summary.compute_s, 1.75e-3);
  EXPECT_DOUBLE_EQ(summary.communication_s, 1.25e-3);
  EXPECT_DOUBLE_EQ(summary.exposed_s, 0.75e-3);
  EXPECT_DOUBLE_EQ(summary.idle_s, 0.5e-3);
  EXPECT_DOUBLE_EQ(summary.exposed_by_s[static_cast<std::size_t>(Stream::tp)], 0);
  EXPECT_DOUBLE_EQ(summary.exposed_by_s[static_cast<std::size_t>(Stream::dp)], 0.75e-3);
}

TEST(ReportSummary, OfAnUnfinishedJobClaimsNothingItDoesNotKnow) {
  JobResult job = two_rank_job();
  job.done = false;
  job.iteration_ends.resize(1);
  EXPECT_FALSE(summarise(job).jct_s.has_value());
  EXPECT_DOUBLE_EQ(*summarise(job).iteration_time_s, 1e-3);
  EXPECT_DOUBLE_EQ(summarise(job).compute_s, 2e-3);  // totals so far
  job.iteration_ends.clear();
  EXPECT_FALSE(summarise(job).iteration_time_s.has_value());
  EXPECT_FALSE(summarise(job).tflops_per_gpu.has_value());
}

TEST(ReportUtilisation, IsTheShareOfTheRunInWhichTheLinkTransmits) {
  EXPECT_DOUBLE_EQ(utilisation(two_rank_results().links[0], 4 * kMillisecond), 0.5);
  EXPECT_EQ(utilisation(LinkResult(), 0), 0);
}

// The time of a link includes data that it still had to send when the run was over.
TEST(ReportUtilisation, IsNeverAboveOne) {
  LinkResult link = two_rank_results().links[0];
  link.counters.busy = 5 * kMillisecond;
  link.counters.last_end = 5 * kMillisecond;
  EXPECT_DOUBLE_EQ(utilisation(link, 4 * kMillisecond), 1);
  EXPECT_DOUBLE_EQ(utilisation(link, 10 * kMillisecond), 0.5);
  EXPECT_DOUBLE_EQ(utilisation(link, 0), 1);
}

TEST(ReportNotes, SayThatCongestionControlHeardNothing) {
  Results results = two_rank_results();
  EXPECT_THAT(derive_notes(results), Not(Contains(HasSubstr("ECN"))));
  results.network.ecn_marks = 0;
  EXPECT_THAT(derive_notes(results),
              Contains(AllOf(HasSubstr("0 ECN marks"), HasSubstr("threshold"), HasSubstr("(dcqcn)"))));
  results.knobs.marker = "none";
  EXPECT_THAT(derive_notes(results), Contains(AllOf(HasSubstr("0 ECN marks"), HasSubstr("marker: none"))));
  results.knobs.congestion_control = "swift";  // needs none
  results.knobs.reacts_to_marks = false;
  EXPECT_THAT(derive_notes(results), Not(Contains(HasSubstr("ECN"))));
}

TEST(ReportNotes, SayThatNobodyHeardTheMarks) {
  Results results = two_rank_results();
  results.knobs.congestion_control = "none";
  results.knobs.reacts_to_marks = false;
  EXPECT_THAT(derive_notes(results),
              Contains(AllOf(HasSubstr("5 ECN marks had no effect"), HasSubstr("`none`"))));
}

TEST(ReportNotes, SayNothingOfPfcThatHadNoReasonToPause) {
  const Results results = two_rank_results();
  ASSERT_EQ(results.network.pfc_pauses, 0u);
  EXPECT_THAT(derive_notes(results), ::testing::IsEmpty());
}

TEST(ReportNotes, SayWhyPacketsWereDropped) {
  Results results = two_rank_results();
  results.network.drops = 3;
  results.network.retransmissions = 7;
  EXPECT_THAT(derive_notes(results), Contains(AllOf(HasSubstr("3 packets dropped"), HasSubstr("headroom"))));
  results.knobs.flow_control = "none";
  EXPECT_THAT(derive_notes(results), Contains(HasSubstr("3 packets dropped, 7 sent again: the fabric was")));
}

// Each of several fabrics has its own marks, drops and settings.
TEST(ReportNotes, SayWhichFabricTheyAreOf) {
  Results results = two_rank_results();
  FabricResult quiet{
      .name = "scale_out", .knobs = {"none", "none", "credits", "go_back_n", false}, .counters = {}};
  quiet.counters.data_packets = 400;
  FabricResult lossy{.name = "storage", .knobs = {"dcqcn", "red", "none", "go_back_n", true}, .counters = {}};
  lossy.counters.data_packets = 20;
  lossy.counters.drops = results.network.drops = 3;
  results.network.retransmissions = 7;
  results.fabrics = {quiet, lossy};
  EXPECT_THAT(derive_notes(results),
              ::testing::ElementsAre("fabric storage: 0 ECN marks: no queue reached its marking threshold, "
                                     "so congestion control (dcqcn) received no signal",
                                     "fabric storage: 3 packets dropped: the fabric was not lossless",
                                     "7 packets sent again"));
  results.fabrics[0].counters.ecn_marks = 2;
  results.fabrics[1].counters.data_packets = results.fabrics[1].counters.drops = 0;
  results.network.drops = results.network.retransmissions = 0;
  EXPECT_THAT(
      derive_notes(results),
      ::testing::ElementsAre(
          "fabric scale_out: 2 ECN marks had no effect: congestion control `none` does not react to them"));
}

TEST(ReportNotes, SayWhereLinksLostPackets) {
  Results results = two_rank_results();
  results.links.push_back(results.links[0]);
  results.links[1].name = "edge1->agg1";
  results.links[0].counters.lost = 2;
  results.links[1].counters.lost = 9;
  results.network.lost = 11;
  results.network.retransmissions = 20;
  EXPECT_THAT(derive_notes(results),
              ::testing::ElementsAre("11 packets were lost on links, 9 of them on edge1->agg1"));
}

TEST(ReportNotes, SayThatNothingWasLostYetPacketsWereSentAgain) {
  Results results = two_rank_results();
  results.network.retransmissions = 20;
  EXPECT_THAT(derive_notes(results),
              Contains(AllOf(HasSubstr("20 packets were sent again"), HasSubstr("reordering"))));
  results.network.timeouts = 3;
  EXPECT_THAT(derive_notes(results), Contains(AllOf(HasSubstr("20 packets were sent again"),
                                                    HasSubstr("3 retransmission timeouts"))));
}

// Three timeouts made 1.8 ms into 403 ms, and nothing said so.
TEST(ReportNotes, SayThatTimeoutsTookMostOfTheRun) {
  Results results = two_rank_results();
  results.simulated = 403 * kMillisecond;
  results.network.timeouts = 3;
  results.network.longest_timeouts = 401 * kMillisecond;
  EXPECT_THAT(derive_notes(results),
              Contains(AllOf(HasSubstr("3 retransmission timeouts: one queue pair waited 401 ms"),
                             HasSubstr("100 %"), HasSubstr("transport.retransmission_timeout"))));
  results.knobs.reliability = "irn";
  EXPECT_THAT(derive_notes(results),
              Contains(HasSubstr("transport.reliability: {timeout_high, timeout_low}")));
  results.network.longest_timeouts = 4 * kMillisecond;
  EXPECT_THAT(derive_notes(results), Not(Contains(HasSubstr("timeout"))));
}

TEST(ReportNotes, SayThatAPriorityActsBetweenNoJobs) {
  Results results = two_rank_results();
  EXPECT_THAT(derive_notes(results), Not(Contains(HasSubstr("priority"))));
  results.jobs[0].priority = 3;
  EXPECT_THAT(derive_notes(results), Contains(AllOf(HasSubstr("`priority` of " + results.jobs[0].name),
                                                    HasSubstr("has no effect"))));
}

TEST(ReportNotes, NameTheFullestLink) {
  Results results = two_rank_results();
  EXPECT_THAT(derive_notes(results), Not(Contains(HasSubstr("edge0->agg1"))));
  results.links[0].counters.busy = 3'920 * kMicrosecond;
  EXPECT_THAT(derive_notes(results), Contains(HasSubstr("edge0->agg1 was busy 98.0 %")));
}

// A job that is not done may have communications that nothing launched, so it has no such note.
TEST(ReportNotes, NameATaskSchedulerByWhichNothingOvertakesInAJobThatIsDone) {
  Results results = two_rank_results();
  const auto note = AllOf(HasSubstr("'fifo'"), HasSubstr("overtook an earlier candidate of its stream"));
  EXPECT_THAT(derive_notes(results), Not(Contains(note)));
  results.jobs[0].scheduling.scheduler = "fifo";
  EXPECT_THAT(derive_notes(results),
              Contains(AllOf(note, HasSubstr("every communication was launched as soon as it was ready"))));
  results.jobs[0].scheduling.held = 3;
  EXPECT_THAT(derive_notes(results), Contains(AllOf(note, HasSubstr("3 were held"))));
  results.jobs[0].done = false;
  EXPECT_THAT(derive_notes(results), Not(Contains(note)));
  results.jobs[0].done = true;
  results.jobs[0].scheduling.reordered = 1;
  EXPECT_THAT(derive_notes(results), Not(Contains(note)));
}

TEST(ReportNotes, TellALackOfRoomFromALackOfRoutes) {
  Results results = two_rank_results();
  results.network.no_route = 1484;
  EXPECT_THAT(derive_notes(results), Contains(AllOf(HasSubstr("1484 packets"), HasSubstr("no route"))));
  EXPECT_THAT(derive_notes(results), Not(Contains(HasSubstr("headroom"))));
}

TEST(ReportNotes, SayWhatWasLostAndWhatWasNotThere) {
  Results results = two_rank_results();
  results.network.drops = 3;
  EXPECT_THAT(derive_notes(results), Contains(HasSubstr("3 packets dropped")));
  results.packet_network = false;
  EXPECT_THAT(derive_notes(results), Contains(HasSubstr("network: ideal")));
}

TEST(ReportOutcome, HasItsExitCodeAndItsReason) {
  Results results = two_rank_results();
  EXPECT_EQ(exit_code(Outcome::done), ExitCode::done);
  EXPECT_EQ(explain(results), "");
  results.outcome = Outcome::stalled;
  EXPECT_EQ(exit_code(results.outcome), ExitCode::stalled);
  EXPECT_THAT(explain(results), HasSubstr("10 of 10 tasks"));
  results.simulated = 478'123'456'789;
  EXPECT_THAT(explain(results), HasSubstr("stalled at 478 ms with"));
  EXPECT_EQ(exit_code(Outcome::limit), ExitCode::limit);
  EXPECT_EQ(exit_code(Outcome::interrupted), ExitCode::interrupted);
}

}  // namespace
}  // namespace netsim::results_test
