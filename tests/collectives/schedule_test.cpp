// Does a schedule say when each message of a plan can travel at the earliest, with the slots that there are?
#include "sim/collectives/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "sim/core/errors.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/algorithms/plan_run.h"
#include "tests/collectives/table_plan.h"

namespace netsim::schedule_test {
namespace {

using netsim::test::AlgorithmCase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint32_t> times_of(const PlanSchedule& schedule) {
  std::vector<std::uint32_t> times;
  for (const ScheduledMessage& message : schedule.messages) times.push_back(message.sender.time);
  return times;
}

// Algorithms whose thread blocks never have two messages to send at a time. They take as many times as the
// closed form has messages that depend on each other.
TEST(Schedule, OfOneMessageATimeIsAsLongAsTheClosedForm) {
  const std::set<std::string> one_at_a_time = {"ring",  "bidirectional_ring", "torus_bucket",    "torus_2d",
                                               "swing", "recursive_doubling", "blueconnect",     "bruck",
                                               "chain", "pairwise",           "halving_doubling"};
  std::size_t looked_at = 0;
  for (const AlgorithmCase& c : netsim::test::algorithm_cases()) {
    if (!one_at_a_time.contains(c.algorithm)) continue;
    for (const std::uint32_t ranks : {2U, 3U, 4U, 5U, 7U, 8U, 12U, 16U, 24U, 33U}) {
      if (!c.suits(ranks)) continue;
      const PlanSchedule schedule = schedule_of(*netsim::test::make_plan(c.algorithm, c.kind, ranks));
      EXPECT_EQ(schedule.times, c.chain(ranks)) << c.algorithm << " " << to_string(c.kind) << " " << ranks;
      ++looked_at;
    }
  }
  EXPECT_GT(looked_at, 100U);
}

// By an executor that knows nothing of time: as many messages, and no fewer times than follow each other.
TEST(Schedule, HasEveryMessageAfterItsCauses) {
  for (const AlgorithmCase& c : netsim::test::algorithm_cases()) {
    for (const std::uint32_t ranks : {2U, 3U, 5U, 7U, 8U, 12U, 16U}) {
      if (!c.suits(ranks)) continue;
      SCOPED_TRACE(std::string(c.algorithm) + " " + to_string(c.kind) + " " + std::to_string(ranks));
      const auto plan = netsim::test::make_plan(c.algorithm, c.kind, ranks);
      const netsim::test::PlanRun run(*plan, kSlots);
      const PlanSchedule schedule = schedule_of(*plan);
      EXPECT_EQ(schedule.wrong, "");
      EXPECT_EQ(schedule.messages.size(), run.messages());
      EXPECT_GE(schedule.times, run.longest_chain());
      std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> busy;
      for (const ScheduledMessage& message : schedule.messages) {
        const ScheduledStep& sender = message.sender;
        EXPECT_GT(message.receiver.time, sender.time);
        if (plan->aggregations() > 0) continue;  // copies of one message are as many messages
        EXPECT_EQ(message.receiver.rank, sender.step.to.rank);
        EXPECT_TRUE(busy.insert({sender.rank, sender.block, sender.time}).second) << "two messages at a time";
      }
    }
  }
}

// Rank 0 has four messages for rank 1. Rank 1 takes them after two answers from rank 2, at 3. The third
// message waits for the slot of the first.
TEST(Schedule, WaitsForSlots) {
  TablePlan plan(CollectiveKind::custom, 3, 1, 4);
  plan.set_scratch(6);
  plan.list(1, 0) = {send(input(0), {2, 0}), receive(scratch(4), {2, 0}), receive(scratch(5), {2, 0})};
  plan.list(2, 0) = {receive(scratch(0), {1, 0}), send(input(0), {1, 0}), send(input(1), {1, 0})};
  for (std::uint32_t chunk = 0; chunk < 4; ++chunk) {
    plan.list(0, 0).push_back(send(input(chunk), {1, 0}));
    plan.list(1, 0).push_back(receive(scratch(chunk), {0, 0}));
  }
  const PlanSchedule schedule = schedule_of(plan);
  ASSERT_EQ(schedule.wrong, "");
  std::vector<std::uint32_t> of_rank_0;
  for (const ScheduledMessage& message : schedule.messages) {
    if (message.sender.rank == 0) of_rank_0.push_back(message.sender.time);
  }
  EXPECT_THAT(of_rank_0, ElementsAre(0, 1, 3, 4));
}

// A step that waits for another thread block of its rank, and copies, which take no time.
TEST(Schedule, WaitsForStepsAndCopiesAtOnce) {
  TablePlan plan(CollectiveKind::custom, 2, 2, 2);
  plan.set_scratch(1);
  plan.list(0, 0) = {send(input(0), {1, 0})};
  plan.list(0, 1) = {after(0, 0, copy(input(0), scratch(0))), send(scratch(0), {1, 1})};
  plan.list(1, 0) = {receive(input(0), {0, 0})};
  plan.list(1, 1) = {after(0, 0, receive(scratch(0), {0, 1}))};
  const PlanSchedule schedule = schedule_of(plan);
  ASSERT_EQ(schedule.wrong, "");
  ASSERT_EQ(schedule.messages.size(), 2U);
  EXPECT_THAT(times_of(schedule), ElementsAre(0, 1));
  EXPECT_EQ(schedule.messages[1].receiver.time, 2U);
  ASSERT_EQ(schedule.local.size(), 1U);
  EXPECT_EQ(schedule.local[0].time, 1U);
  EXPECT_EQ(schedule.times, 2U);
}

TEST(Schedule, OfAWrongPlanGoesAsFarAsItDoes) {
  TablePlan plan(*netsim::test::make_plan("ring", CollectiveKind::all_reduce, 4));
  plan.list(2, 0)[3].kind = Step::Kind::receive;  // the data that it should send on
  const PlanSchedule schedule = schedule_of(plan);
  EXPECT_THAT(schedule.wrong, HasSubstr("rank "));
  EXPECT_GT(schedule.messages.size(), 0U);
  EXPECT_LT(schedule.messages.size(), 4U * 6);
  TablePlan nobody(CollectiveKind::custom, 2, 1, 1);
  nobody.list(0, 0) = {send(input(0), {7, 0})};
  EXPECT_NE(schedule_of(nobody).wrong, "");
  EXPECT_TRUE(schedule_of(nobody).messages.empty());
}

TEST(Schedule, IsOfNoMorePlanThanAnybodyLooksAt) {
  const auto ring = netsim::test::make_plan("ring", CollectiveKind::all_reduce, 8192);
  try {
    schedule_of(*ring);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("of 8192 ranks has 134209536 steps"));
  }
}

}  // namespace
}  // namespace netsim::schedule_test
