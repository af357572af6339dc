// Tests what schedulers of gradients launch beside a collective of another stream of the same group.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/core/registry.h"
#include "sim/scheduling/task/task_scheduler.h"

namespace netsim::lanes_test {
namespace {

CommunicationFacts facts(const std::string& stream) {
  if (stream == "ep") return {"all_to_all", "ep", kMegabyte};
  return {"all_reduce", "dp", kMegabyte};
}

// Returns whether a scheduler launches a collective of stream `next` while one of `runs` is in flight.
bool launches(const std::string& kind, const std::string& runs, const std::string& next) {
  const GroupId group{0};
  const std::vector<InFlight> in_flight{{facts(runs), TaskId{1}, group, kMegabyte}};
  Candidate candidate{facts(next)};
  candidate.task = TaskId{2};
  candidate.group = group;
  candidate.left = candidate.next = kMegabyte;
  const RankView rank{RankId{0}, kMicrosecond, in_flight, {}};
  const auto scheduler = Registry<TaskScheduler>::instance().create(kind);
  return scheduler->next(rank, std::vector<Candidate>{candidate}).candidate == 0;
}

TEST(Lanes, GradientsDoNotHoldAllToAllsOfTheirGroup) {
  for (const char* kind : {"ddp", "merge", "priority", "credit"}) {
    EXPECT_TRUE(launches(kind, "dp", "ep")) << kind;
    EXPECT_TRUE(launches(kind, "ep", "dp")) << kind;
    EXPECT_TRUE(launches(kind, "ep", "ep")) << kind;
    EXPECT_EQ(launches(kind, "dp", "dp"), std::string(kind) == "credit") << "the credit is 4 parts: " << kind;
  }
}

TEST(Lanes, CollectivesThatAreNoGradientsAreNotCut) {
  for (const char* kind : {"priority", "credit"}) {
    const auto scheduler = Registry<TaskScheduler>::instance().create(kind);
    EXPECT_GT(scheduler->part_bytes(facts("dp")), 0) << kind;
    EXPECT_EQ(scheduler->part_bytes(facts("ep")), 0) << kind;
    EXPECT_GT(scheduler->part_bytes({"message", "pp", kMegabyte}), 0) << kind;
  }
}

TEST(Lanes, RanksAgreeOnlyOnWhatASchedulerMayHold) {
  for (const char* kind : {"ddp", "merge", "priority", "credit", "preferred", "trirace", "fifo"}) {
    const auto scheduler = Registry<TaskScheduler>::instance().create(kind);
    EXPECT_TRUE(scheduler->is_agreed(facts("dp"))) << kind;
    EXPECT_EQ(scheduler->is_agreed(facts("ep")), std::string(kind) == "fifo") << kind;
  }
}

TEST(Lanes, FirstInFirstOutIsOneQueueForAllCollectivesOfAGroup) {
  EXPECT_FALSE(launches("fifo", "dp", "ep"));
  EXPECT_FALSE(launches("fifo", "ep", "dp"));
}

}  // namespace
}  // namespace netsim::lanes_test
