// Tests the rule of TriRace: what it launches at once, what it holds, and which links it looks at.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/core/registry.h"
#include "sim/scheduling/task/task_scheduler.h"
#include "tests/scheduling/profile_maker.h"

namespace netsim::trirace_test {
namespace {

using Candidates = std::vector<Candidate>;

Candidate candidate(const char* kind, const char* stream, std::uint64_t order, std::uint8_t links = 1) {
  Candidate one{{kind, stream, kMegabyte}};
  one.order = order;
  one.group = GroupId{std::string(kind) == "message" ? kNoIndex : 0};
  one.left = one.next = kMegabyte;
  one.links = links;
  return one;
}
InFlight running(const char* kind, const char* stream, std::uint8_t links = 1) {
  return {{kind, stream, kMegabyte}, TaskId{9}, GroupId{kNoIndex}, kMegabyte, links};
}

Launch next(const std::vector<InFlight>& in_flight, const Candidates& candidates,
            const std::string& text = "trirace") {
  const auto scheduler = Registry<TaskScheduler>::instance().create(parse_config(text, "trirace.yaml"), "");
  return scheduler->next(RankView{RankId{0}, kMicrosecond, in_flight, {}}, candidates);
}

const Candidate kMessage = candidate("message", "pp", 3), kSparse = candidate("all_to_all", "ep", 2),
                kTensor = candidate("all_reduce", "tp", 1), kGradient = candidate("all_reduce", "dp", 0);

TEST(TriRace, LaunchesMessagesThenSparseExchangesThenGradients) {
  Candidates candidates{kGradient, kTensor, kSparse, kMessage};
  for (const int priority : {2, 1, 0, 0}) {
    const Launch launch = next({}, candidates);
    ASSERT_EQ(launch.candidate, candidates.size() - 1);
    EXPECT_EQ(launch.priority, priority);
    candidates.pop_back();
  }
}

TEST(TriRace, HoldsGradientsWhileAMessageOrASparseExchangeRunsOnTheirLinks) {
  for (const InFlight& one : {running("message", "pp"), running("all_to_all", "ep")}) {
    EXPECT_EQ(next({one}, {kGradient}).candidate, Launch::kNothing);
    EXPECT_EQ(next({one}, {candidate("all_reduce", "dp", 0, 0)}).candidate, 0U);
    EXPECT_EQ(next({one}, {kGradient, kTensor}).candidate, 1U);
    EXPECT_EQ(next({one}, {kGradient, kMessage}).candidate, 1U);
  }
  EXPECT_EQ(next({running("all_reduce", "tp")}, {kGradient}).candidate, 0U);
}

TEST(TriRace, LaunchesWhatIsNeededFirstAndBoundsItsParts) {
  EXPECT_EQ(next({}, {candidate("all_reduce", "dp", 7), candidate("all_reduce", "dp", 4)}).candidate, 1U);
  InFlight part = running("all_reduce", "dp");
  part.group = GroupId{0};
  EXPECT_EQ(next({part}, {kGradient}).candidate, Launch::kNothing);
  EXPECT_EQ(next({part}, {kGradient}, "{kind: trirace, in_flight: 2}").candidate, 0U);
}

TEST(TriRace, CutsAndAgreesOnGradientsAlone) {
  const auto scheduler = Registry<TaskScheduler>::instance().create(
      parse_config("{kind: trirace, sparse: [all_gather, ep], part: 2 MB}", "trirace.yaml"), "");
  const CommunicationFacts gradient{"all_reduce", "dp", kMegabyte};
  EXPECT_EQ(scheduler->part_bytes(gradient), 2 * kMegabyte);
  EXPECT_TRUE(scheduler->is_agreed(gradient));
  for (const CommunicationFacts& facts :
       {CommunicationFacts{"message", "pp", kMegabyte}, CommunicationFacts{"all_gather", "dp", kMegabyte},
        CommunicationFacts{"all_to_all", "ep", kMegabyte},
        CommunicationFacts{"all_reduce", "tp", kMegabyte}}) {
    EXPECT_EQ(scheduler->part_bytes(facts), 0);
    EXPECT_FALSE(scheduler->is_agreed(facts));
  }
}

TEST(TriRace, PlansWithTheLinksOfEachCommunication) {
  test::ProfileMaker maker;
  const std::uint32_t first = maker.compute(1, {}, 0);
  maker.add(ProfileTaskKind::collective, 1, 0, {first});
  maker.add(ProfileTaskKind::collective, 1, 1, {first});
  JobProfile profile = maker.finish();
  profile.tasks[1].leaves_host = true;
  const LaunchPlan plan = Registry<TaskScheduler>::instance().create("trirace")->plan(profile);
  EXPECT_EQ(plan.links, (std::vector<std::uint8_t>{1, 0}));
}

}  // namespace
}  // namespace netsim::trirace_test
