// Tests tables of sums by key: which sums leave a switch, and when.
#include "sim/network/aggregation/key_table.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace netsim::key_table_test {
namespace {

using Arrival = SwitchSums::Arrival;

constexpr std::uint32_t kKeys = 111;  // of members with the keys 1, 10 and 100

// A table of a group with 8 slots. add() returns what happens to the packet of the member with this key.
struct Table {
  Table(std::uint32_t front, std::uint32_t back) : table({8, 3, kKeys}, front, back) {}
  Arrival add(std::uint32_t key, std::uint32_t psn) {
    left = {psn, aggregation_value(key, psn), 100 + psn};
    return table.add(0, left);
  }
  // Returns whether the sum that left last is that of these keys.
  bool has_left(std::uint32_t keys, std::uint32_t psn) const {
    return left.psn == psn && left.value == aggregation_value(keys, psn) && left.bytes == 100 + psn;
  }
  KeyTable table;
  Addend left;
};

TEST(KeyTable, AddsUpWhatHasAPlace) {
  Table table(2, 0);
  EXPECT_EQ(table.add(1, 0), Arrival::waits);
  EXPECT_EQ(table.add(1, 1), Arrival::waits);
  EXPECT_EQ(table.add(10, 1), Arrival::waits);
  EXPECT_EQ(table.add(100, 1), Arrival::completes);
  EXPECT_TRUE(table.has_left(kKeys, 1));
  EXPECT_EQ(table.add(1, 3), Arrival::waits) << "the place of 1 is free";
}

TEST(KeyTable, PassesOnWithoutPlaces) {
  Table table(0, 0);
  EXPECT_EQ(table.add(1, 4), Arrival::unfinished);
  EXPECT_TRUE(table.has_left(1, 4));
  EXPECT_EQ(table.add(10, 4), Arrival::unfinished);
  EXPECT_EQ(table.add(100, 4), Arrival::unfinished) << "the last one is not the whole sum";
  EXPECT_TRUE(table.has_left(100, 4));
}

TEST(KeyTable, SendsOnTheSumWhosePlaceIsTaken) {
  Table table(2, 0);
  EXPECT_EQ(table.add(1, 1), Arrival::waits);
  EXPECT_EQ(table.add(10, 1), Arrival::waits);
  EXPECT_EQ(table.add(1, 3), Arrival::unfinished);
  EXPECT_TRUE(table.has_left(11, 1));
  EXPECT_EQ(table.add(100, 1), Arrival::unfinished) << "all packets of 1 have come";
  EXPECT_TRUE(table.has_left(100, 1));
  EXPECT_EQ(table.add(110, 3), Arrival::completes);
}

TEST(KeyTable, MovesSumsToTheBackTable) {
  Table table(1, 2);
  EXPECT_EQ(table.add(1, 0), Arrival::waits);
  EXPECT_EQ(table.add(1, 1), Arrival::waits) << "0 moves to the back table";
  EXPECT_EQ(table.add(10, 0), Arrival::waits) << "so does 1";
  EXPECT_EQ(table.add(100, 0), Arrival::completes) << "of both tables";
  EXPECT_TRUE(table.has_left(kKeys, 0));
  EXPECT_EQ(table.add(10, 3), Arrival::waits);
  EXPECT_EQ(table.add(10, 5), Arrival::unfinished) << "3 moves to the place of 1";
  EXPECT_TRUE(table.has_left(1, 1));
}

// In any order of packets in a window, each packet leaves once, and no key stays.
TEST(KeyTable, EveryPacketLeavesOnce) {
  EXPECT_TRUE(rc::check("the values that leave add up to those of all members", [] {
    Table table(*rc::gen::inRange(0U, 9U), *rc::gen::inRange(0U, 9U));
    std::vector<std::pair<std::uint32_t, std::uint32_t>> packets;
    for (std::uint32_t psn = 0; psn < 8; ++psn) {
      for (const std::uint32_t key : {1U, 10U, 100U}) packets.emplace_back(key, psn);
    }
    // Draws a permutation.
    for (std::size_t i = packets.size(); i > 1; --i)
      std::swap(packets[i - 1], packets[*rc::gen::inRange<std::size_t>(0, i)]);
    std::map<std::uint32_t, std::uint32_t> sums;
    for (const auto& [key, psn] : packets) {
      const Arrival arrival = table.add(key, psn);
      RC_ASSERT(arrival == Arrival::waits || arrival == Arrival::completes || arrival == Arrival::unfinished);
      if (arrival != Arrival::waits) sums[table.left.psn] += table.left.value;
    }
    for (std::uint32_t psn = 0; psn < 8; ++psn) RC_ASSERT(sums[psn] == aggregation_value(kKeys, psn));
  }));
}

}  // namespace
}  // namespace netsim::key_table_test
