// Tests the memory that aggregation trees take of switches.
#include "sim/transport/connections/aggregation_memory.h"

#include <gtest/gtest.h>

namespace netsim::aggregation_memory_test {
namespace {

SwitchParameters limits(Bytes memory, std::int64_t groups) {
  SwitchParameters rules;
  rules.aggregation_memory = memory;
  rules.aggregation_groups = groups;
  return rules;
}

TEST(AggregationMemory, FitsUpToTheLastByte) {
  AggregationMemory memory;
  memory.take({3, 600});
  EXPECT_TRUE(memory.fits({3, 400}, limits(1000, 0)));
  EXPECT_FALSE(memory.fits({3, 401}, limits(1000, 0)));
  EXPECT_TRUE(memory.fits({4, 1000}, limits(1000, 0)));  // another switch
}

TEST(AggregationMemory, FitsUpToTheLastTree) {
  AggregationMemory memory;
  memory.take({3, 0});
  EXPECT_TRUE(memory.fits({3, 0}, limits(0, 2)));
  EXPECT_FALSE(memory.fits({3, 0}, limits(0, 1)));
}

TEST(AggregationMemory, HasNoLimitUnlessOneIsGiven) {
  AggregationMemory memory;
  memory.take({3, 1000 * kGigabyte});
  EXPECT_TRUE(memory.fits({3, 1000 * kGigabyte}, limits(0, 0)));
}

TEST(AggregationMemory, RemembersTheMostThatWasTaken) {
  AggregationMemory memory;
  memory.take({3, 500});
  memory.take({3, 300});
  memory.give_back({3, 500});
  memory.take({3, 100});
  EXPECT_EQ(memory.of(3).bytes, 400);
  EXPECT_EQ(memory.of(3).most, 800);
  EXPECT_EQ(memory.of(3).trees, 2U);
  EXPECT_EQ(memory.of(3).most_trees, 2U);
  EXPECT_EQ(memory.of(4).most, 0);
}

TEST(AggregationMemory, CountsMessagesThatWaitBySwitch) {
  AggregationMemory memory;
  memory.count_waiting(3);
  memory.count_waiting(3);
  EXPECT_EQ(memory.of(3).waited, 2U);
  EXPECT_EQ(memory.of(4).waited, 0U);
  ASSERT_EQ(memory.uses().size(), 1U);
}

}  // namespace
}  // namespace netsim::aggregation_memory_test
