// Tests the aggregation groups of switches: what is counted at each switch, and how long adding takes.
#include "sim/network/aggregation/switch_aggregations.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace netsim::switch_aggregations_test {
namespace {

using Arrival = SlotPool::Arrival;

// A group of two members at a switch, whose packets have 300 B.
struct Group {
  explicit Group(std::uint32_t slots, BitRate rate = 0) {
    SwitchAggregations::At at;
    at.members = 2;
    at.slots = slots;
    at.adder = adder = switches.adder_of(7);
    at.rate = rate;
    first = switches.add(std::move(at));
  }
  Arrival add(std::uint32_t member, std::uint32_t psn) {
    Addend addend{psn, 1, 300};
    return switches.add_packet(switches.entry(first + member), addend);
  }
  const SwitchAggregations::At& at() const { return switches.at(switches.entry(first)); }
  const AggregationCounters& counters() const { return switches.adders()[adder].counters; }

  SwitchAggregations switches;
  std::uint32_t adder = 0, first = 0;
};

TEST(SwitchAggregations, CountsPacketsAndSumsOfAStream) {
  Group group(0);
  EXPECT_EQ(group.add(0, 0), Arrival::waits);
  EXPECT_EQ(group.add(0, 1), Arrival::waits);
  EXPECT_EQ(group.add(1, 0), Arrival::completes);
  EXPECT_EQ(group.counters().packets, 3U);
  EXPECT_EQ(group.counters().bytes, 900);
  EXPECT_EQ(group.counters().sums, 1U);
}

TEST(SwitchAggregations, CountsPacketsThatComeAgainOnlyAsSuch) {
  Group group(4);
  EXPECT_EQ(group.add(0, 0), Arrival::waits);
  EXPECT_EQ(group.add(0, 0), Arrival::absorbed);
  EXPECT_EQ(group.add(1, 0), Arrival::completes);
  EXPECT_EQ(group.add(0, 0), Arrival::repeats);
  EXPECT_EQ(group.add(1, 0), Arrival::repeats);
  EXPECT_EQ(group.counters().packets, 2U);
  EXPECT_EQ(group.counters().bytes, 600);
  EXPECT_EQ(group.counters().sums, 1U);
  EXPECT_EQ(group.counters().repeated, 2U);
  EXPECT_EQ(group.counters().discarded, 1U);
}

TEST(SwitchAggregations, GroupsOfASwitchShareItsAdder) {
  Group group(0);
  EXPECT_EQ(group.switches.adder_of(7), group.adder);
  EXPECT_NE(group.switches.adder_of(3), group.adder);
  EXPECT_EQ(group.switches.adders().size(), 2U);
  EXPECT_EQ(group.switches.adders()[1].node, 3U);
}

TEST(SwitchAggregations, AnAdderAddsOnePacketAfterTheOther) {
  Group group(0, 100 * kGbps);  // 300 B take 24 ns
  EXPECT_EQ(group.switches.occupy(group.at(), 300, 0), 24 * kNanosecond);
  EXPECT_EQ(group.switches.occupy(group.at(), 300, 10 * kNanosecond), 38 * kNanosecond);
  EXPECT_EQ(group.switches.occupy(group.at(), 300, 100 * kNanosecond), 24 * kNanosecond);
  Group at_once(0);
  EXPECT_EQ(at_once.switches.occupy(at_once.at(), 300, 0), 0);
}

TEST(SwitchAggregations, GroupsOfASwitchHaveRatesOfTheirOwn) {
  Group group(0, 100 * kGbps);  // 300 B take 24 ns, and at half the rate 48 ns
  SwitchAggregations::At slow = group.at();
  slow.rate = 50 * kGbps;
  EXPECT_EQ(group.switches.occupy(group.at(), 300, 0), 24 * kNanosecond);
  EXPECT_EQ(group.switches.occupy(slow, 300, 0), 72 * kNanosecond);
}

}  // namespace
}  // namespace netsim::switch_aggregations_test
