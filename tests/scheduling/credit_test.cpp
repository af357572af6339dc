// Does `credit` launch the first part whose bytes fit, as BytePS's queue does?
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/scheduling/task/task_scheduler.h"

namespace netsim::credit_test {
namespace {

Candidate candidate(std::uint64_t order, Bytes next, Bytes last) {
  Candidate one;
  one.kind = "message";
  one.order = order;
  one.next = next;
  one.last = last;
  return one;
}

// Asks for the next launch while `in_flight` bytes of a credit of 10 KiB are in flight.
Launch next(Bytes in_flight, const std::vector<Candidate>& candidates) {
  const auto scheduler = Registry<TaskScheduler>::instance().create(
      parse_config("{kind: credit, part: 4 KiB, credit: 10 KiB}", "credit.yaml"), "");
  InFlight part;
  part.kind = "message";
  part.part = in_flight;
  const std::vector<InFlight> flight{part};
  return scheduler->next(RankView{0, 0, flight, {}}, candidates);
}

TEST(CreditScheduler, LaunchesTheNextPartWhereItFits) {
  const Launch launch = next(6 * kKibibyte, {candidate(1, 4 * kKibibyte, 0), candidate(0, 4 * kKibibyte, 1)});
  EXPECT_EQ(launch.candidate, 1U);
  EXPECT_FALSE(launch.last_part);
}

TEST(CreditScheduler, LaunchesTheShorterLastPartWhereTheNextOneDoesNotFit) {
  const Launch launch =
      next(8 * kKibibyte, {candidate(1, kKibibyte, 0), candidate(0, 4 * kKibibyte, 2 * kKibibyte)});
  EXPECT_EQ(launch.candidate, 1U);
  EXPECT_TRUE(launch.last_part);
}

TEST(CreditScheduler, PassesOverACommunicationNoPartOfWhichFits) {
  const Launch launch =
      next(9 * kKibibyte, {candidate(1, kKibibyte, 0), candidate(0, 4 * kKibibyte, 2 * kKibibyte)});
  EXPECT_EQ(launch.candidate, 0U);
  EXPECT_FALSE(launch.last_part);
  EXPECT_EQ(next(9 * kKibibyte, {candidate(0, 4 * kKibibyte, 0)}).candidate, Launch::kNothing);
}

}  // namespace
}  // namespace netsim::credit_test
