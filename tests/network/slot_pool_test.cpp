// Tests pools of slots at a switch: what happens to packets that come for the first time or again.
#include "sim/network/aggregation/slot_pool.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "sim/core/errors.h"

namespace netsim::slot_pool_test {
namespace {

using Arrival = SlotPool::Arrival;

// Adds a packet with value 10^member, and returns the value that the pool leaves in it.
struct Pool {
  Pool(std::uint32_t slots, std::uint32_t members) : pool(slots, members) {}
  Arrival add(std::uint32_t member, std::uint32_t psn) {
    value = 1;
    for (std::uint32_t i = 0; i < member; ++i) value *= 10;
    Addend addend{psn, value, 0};
    const Arrival arrival = pool.add(member, addend);
    value = addend.value;
    return arrival;
  }
  SlotPool pool;
  std::uint32_t value = 0;
};

TEST(SlotPool, AddsEachMemberOnce) {
  Pool pool(4, 3);
  EXPECT_EQ(pool.add(2, 5), Arrival::waits);
  EXPECT_EQ(pool.add(2, 5), Arrival::absorbed);
  EXPECT_EQ(pool.add(0, 5), Arrival::waits);
  EXPECT_EQ(pool.add(1, 5), Arrival::completes);
  EXPECT_EQ(pool.value, 111U);
}

TEST(SlotPool, KeepsASumUntilAllHaveSentTheNextPacketOfItsSlot) {
  Pool pool(2, 2);
  EXPECT_EQ(pool.add(0, 0), Arrival::waits);
  EXPECT_EQ(pool.add(1, 0), Arrival::completes);
  EXPECT_EQ(pool.add(0, 2), Arrival::waits);  // member 1 has lost the sum of 0
  EXPECT_EQ(pool.add(1, 0), Arrival::repeats);
  EXPECT_EQ(pool.value, 11U);
  EXPECT_EQ(pool.add(1, 2), Arrival::completes);
  EXPECT_EQ(pool.add(1, 4), Arrival::waits);  // the version of packet 0 again
  EXPECT_EQ(pool.add(1, 4), Arrival::absorbed);
  EXPECT_EQ(pool.add(0, 2), Arrival::repeats);
  EXPECT_EQ(pool.add(0, 4), Arrival::completes);
  EXPECT_EQ(pool.value, 11U);
}

TEST(SlotPool, HasSlotsApart) {
  Pool pool(2, 2);
  EXPECT_EQ(pool.add(0, 0), Arrival::waits);
  EXPECT_EQ(pool.add(0, 1), Arrival::waits);
  EXPECT_EQ(pool.add(1, 1), Arrival::completes);
  EXPECT_EQ(pool.add(1, 3), Arrival::waits);
  EXPECT_EQ(pool.add(1, 0), Arrival::completes);
}

TEST(SlotPool, HasMoreMembersThanAWordHasBits) {
  SlotPool pool(1, 130);
  for (std::uint32_t member = 0; member < 129; ++member) {
    Addend addend{0, member, 0};
    EXPECT_EQ(pool.add(member, addend), Arrival::waits);
    EXPECT_EQ(pool.add(member, addend), Arrival::absorbed);
  }
  Addend last{0, 129, 0};
  EXPECT_EQ(pool.add(129, last), Arrival::completes);
  EXPECT_EQ(last.value, 130U * 129 / 2);
}

TEST(SlotPool, AWorkerThatIsTooFarAheadIsABug) {
  Pool pool(1, 2);
  EXPECT_EQ(pool.add(0, 0), Arrival::waits);
  EXPECT_EQ(pool.add(0, 1), Arrival::waits);
  EXPECT_THROW(pool.add(0, 2), InternalError);
}

}  // namespace
}  // namespace netsim::slot_pool_test
