// Are the tables of a launch plan found by rank and position, in every iteration?
#include "sim/jobs/task_scheduling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace netsim::launch_plan_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LaunchTables, HaveTheHoldsOfATaskInEveryIteration) {
  LaunchTables tables({3, 4});
  EXPECT_FALSE(tables.is_awaited(1, 0));
  tables.add_hold(1, 2, 0);
  tables.add_hold(1, 2, 1);
  for (const std::uint32_t iteration : {0U, 1U, 5U}) {
    const std::uint32_t first = iteration * 4;
    EXPECT_THAT(tables.holds(1, first + 2), ElementsAre(0, 1));
    EXPECT_THAT(tables.holds(1, first + 1), IsEmpty());
    EXPECT_TRUE(tables.is_awaited(1, first + 1));
    EXPECT_FALSE(tables.is_awaited(1, first + 2));
    EXPECT_EQ(tables.position(1, first + 3), 3U);
    EXPECT_EQ(tables.iteration(1, first + 3), iteration);
  }
  EXPECT_THAT(tables.holds(0, 2), IsEmpty());
}

TEST(LaunchCounts, AddUp) {
  LaunchCounts sum, one;
  one.launches = 2;
  one.parts = 3;
  one.held = 1;
  one.held_by_scheduler = one.longest_held = 7;
  sum.add(one);
  one.longest_held = 4;
  sum.add(one);
  EXPECT_EQ(sum.launches, 4U);
  EXPECT_EQ(sum.parts, 6U);
  EXPECT_EQ(sum.held, 2U);
  EXPECT_EQ(sum.held_by_scheduler, 14);
  EXPECT_EQ(sum.longest_held, 7);
}

}  // namespace
}  // namespace netsim::launch_plan_test
