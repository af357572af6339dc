// Tests aggregators of a switch: what becomes of packets that find theirs empty, in use, or taken by others.
#include "sim/network/aggregation/aggregator_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "sim/core/errors.h"

namespace netsim::aggregator_table_test {
namespace {

using Outcome = AggregatorTable::Outcome;
constexpr std::uint64_t kAll = 0b111;

// Adds packets whose value is 10^worker, and keeps what goes on.
struct Table {
  explicit Table(std::uint32_t size) : table(size) {}
  Outcome add(std::uint32_t session, std::uint32_t psn, std::uint64_t workers, bool again = false) {
    packet = {};
    packet.workers = workers;
    for (std::uint32_t worker = 0, value = 1; worker < 3; ++worker, value *= 10)
      packet.value += (workers >> worker & 1) != 0 ? value : 0;
    return table.add(0, {session, psn}, kAll, again, packet);
  }
  AggregatorTable table;
  Contribution packet;
};

TEST(AggregatorTable, AddsUpTheWorkersOfOnePacket) {
  Table table(1);
  EXPECT_EQ(table.add(1, 5, 0b001), Outcome::joins);
  EXPECT_EQ(table.add(1, 5, 0b100), Outcome::joins);
  EXPECT_EQ(table.add(1, 5, 0b010), Outcome::completes);
  EXPECT_EQ(table.packet.workers, kAll);
  EXPECT_EQ(table.packet.value, 111U);
  EXPECT_EQ(table.table.most_used(), 1U);
}

TEST(AggregatorTable, LetsPacketsPassWhoseAggregatorHoldsAnotherSum) {
  Table table(1);
  EXPECT_EQ(table.add(1, 5, 0b001), Outcome::joins);
  EXPECT_EQ(table.add(2, 5, 0b001), Outcome::collides) << "another session";
  EXPECT_EQ(table.packet.workers, 0b001U);
  EXPECT_TRUE(table.packet.collided);
  EXPECT_EQ(table.add(1, 6, 0b010), Outcome::collides) << "another packet";
  EXPECT_EQ(table.packet.value, 10U);
}

TEST(AggregatorTable, KeepsAnAggregatorUntilTheResultPasses) {
  Table table(1);
  table.add(1, 5, 0b011);
  EXPECT_EQ(table.add(1, 5, 0b100), Outcome::completes);
  EXPECT_EQ(table.add(2, 0, 0b001), Outcome::collides);
  table.table.free(0, {1, 4});
  EXPECT_EQ(table.add(2, 0, 0b001), Outcome::collides) << "the result of another packet frees nothing";
  table.table.free(0, {1, 5});
  EXPECT_EQ(table.add(2, 0, 0b001), Outcome::joins);
}

TEST(AggregatorTable, SendsWhatItHasOnWithAPacketThatComesAgain) {
  Table table(1);
  table.add(1, 5, 0b001);
  EXPECT_EQ(table.add(1, 5, 0b010, true), Outcome::flushes);
  EXPECT_EQ(table.packet.value, 11U);
  EXPECT_EQ(table.add(1, 5, 0b100, true), Outcome::flushes) << "it never takes an aggregator";
  EXPECT_EQ(table.packet.value, 100U);
  EXPECT_EQ(table.add(2, 9, 0b001), Outcome::joins) << "the aggregator is free";
  EXPECT_EQ(table.add(1, 5, 0b100, true), Outcome::flushes) << "that of another session stays";
  EXPECT_EQ(table.add(2, 9, 0b110), Outcome::completes);
}

TEST(AggregatorTable, NeverAddsAPacketTwice) {
  Table table(1);
  table.add(1, 5, 0b011);
  EXPECT_EQ(table.add(1, 5, 0b001, true), Outcome::flushes);
  EXPECT_EQ(table.packet.value, 11U) << "the sum has the packet already";
  table.add(1, 6, 0b001);
  EXPECT_EQ(table.add(1, 6, 0b011), Outcome::passes);
  EXPECT_EQ(table.packet.value, 11U);
  table.table.free(0, {1, 6});
  table.add(1, 7, 0b101);
  EXPECT_EQ(table.add(1, 7, 0b011, true), Outcome::flushes);
  EXPECT_EQ(table.packet.value, 11U) << "a sum with only some of the packet's workers is dropped";
}

TEST(AggregatorTable, LetsAllPacketsPassWithoutAggregators) {
  Table table(0);
  EXPECT_EQ(table.add(1, 5, 0b001), Outcome::collides);
  EXPECT_EQ(table.add(1, 5, kAll), Outcome::passes);
  EXPECT_EQ(table.add(1, 5, 0b010, true), Outcome::flushes);
  table.table.free(0, {1, 5});
}

TEST(AggregatorTable, RefusesAPacketOfAWorkerThatIsNotBelow) {
  Table table(1);
  EXPECT_THROW(table.add(1, 5, 0b1001), InternalError);
}

TEST(AggregatorIndices, DifferWithinAWindowWhereThereAreEnough) {
  const AggregatorIndices indices(7, 100, 50, 100);
  std::set<std::uint32_t> used;
  for (std::uint32_t psn = 0; psn < 100; ++psn) used.insert(indices.of(psn));
  EXPECT_EQ(used.size(), 100U);
  EXPECT_EQ(*used.begin(), 50U);
  EXPECT_EQ(*used.rbegin(), 149U);
}

TEST(AggregatorIndices, ChangeAfterACollisionOnly) {
  AggregatorIndices indices(7, 4, 0, 1000);
  for (std::uint32_t psn = 0; psn < 100; ++psn) {
    const std::uint32_t index = indices.of(psn);
    indices.choose_next(psn, psn % 3 == 0);
    EXPECT_EQ(indices.of(psn + 4) == index, psn % 3 != 0);
  }
}

TEST(AggregatorIndices, AreSharedByPacketsWhereThereAreFew) {
  AggregatorIndices indices(7, 4, 0, 2);
  EXPECT_EQ(indices.of(0), indices.of(2));
  EXPECT_NE(indices.of(0), indices.of(1));
  const std::uint32_t index = indices.of(1);
  indices.choose_next(1, true);
  EXPECT_EQ(indices.of(5), index) << "there is no unused one";
  AggregatorIndices none(7, 4, 0, 0);
  none.choose_next(0, true);
  EXPECT_EQ(none.of(4), 0U);
}

}  // namespace
}  // namespace netsim::aggregator_table_test
