// Tests which packets a member of a pool of slots sends, and when it sends them again.
#include "sim/transport/sender/slot_window.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace netsim::slot_window_test {
namespace {

constexpr Time kTimeout = 10 * kMicrosecond;

SlotWindow window(std::uint32_t slots, std::uint32_t timeouts_to_double = 0) {
  return {AggregationPool{.slots = slots, .timeout = kTimeout, .timeouts_to_double = timeouts_to_double}, 1};
}

// Sends all packets that may be sent, and returns their numbers.
std::vector<std::uint32_t> sent(SlotWindow& window, Time now = 0) {
  std::vector<std::uint32_t> numbers;
  while (window.has_ready()) {
    numbers.push_back(window.next());
    window.take(now);
  }
  return numbers;
}
using Numbers = std::vector<std::uint32_t>;

TEST(SlotWindow, SendsOnePacketOfEachSlot) {
  SlotWindow slots = window(4);
  EXPECT_FALSE(slots.has_ready());
  slots.extend(2);
  EXPECT_EQ(sent(slots), (Numbers{0, 1}));
  slots.extend(9);
  EXPECT_EQ(sent(slots), (Numbers{2, 3}));
}

TEST(SlotWindow, ASumMakesOnlyItsSlotReady) {
  SlotWindow slots = window(4);
  slots.extend(13);
  sent(slots);
  EXPECT_TRUE(slots.take_sum(2));
  EXPECT_EQ(sent(slots), (Numbers{6}));
  EXPECT_TRUE(slots.take_sum(6));
  EXPECT_FALSE(slots.take_sum(6)) << "again";
  EXPECT_FALSE(slots.take_sum(2)) << "again";
  EXPECT_EQ(sent(slots), (Numbers{10}));
  EXPECT_FALSE(slots.has_sum(0));
  EXPECT_TRUE(slots.take_sum(0));
  EXPECT_TRUE(slots.has_sum(0));
  EXPECT_TRUE(slots.take_sum(10));
  EXPECT_EQ(sent(slots), (Numbers{4})) << "the slot of 10 has no packet before the end";
  slots.extend(15);
  EXPECT_EQ(sent(slots), (Numbers{14}));
}

TEST(SlotWindow, SendsAgainAfterTheTimeoutInTheOrderOfSending) {
  SlotWindow slots = window(4);
  slots.extend(4);
  EXPECT_EQ(slots.due(), kNever);
  sent(slots, 0);
  EXPECT_TRUE(slots.take_sum(1));
  EXPECT_EQ(slots.due(), kTimeout);
  EXPECT_EQ(slots.time_out(kTimeout - 1), 0U);
  EXPECT_EQ(slots.time_out(kTimeout), 3U);
  EXPECT_EQ(slots.next(), 0U);
  EXPECT_TRUE(slots.take(kTimeout)) << "it was sent before";
  EXPECT_TRUE(slots.take_sum(2)) << "the first copy was only late";
  EXPECT_EQ(sent(slots, kTimeout), (Numbers{3}));
  EXPECT_EQ(slots.due(), 2 * kTimeout);
}

TEST(SlotWindow, DoublesTheTimeoutUntilNothingIsInFlight) {
  SlotWindow slots = window(1, 2);
  slots.extend(1);
  Time now = 0;
  for (const Time wait : {1, 1, 2, 2, 4}) {
    sent(slots, now);
    EXPECT_EQ(slots.due(), now + wait * kTimeout);
    now = slots.due();
    EXPECT_EQ(slots.time_out(now), 1U);
  }
  sent(slots, now);
  EXPECT_TRUE(slots.take_sum(0));
  slots.extend(2);
  sent(slots, now);
  EXPECT_EQ(slots.due(), now + kTimeout);
}

TEST(SlotWindow, ValuesTellMembersAndPackets) {
  EXPECT_NE(SlotWindow::value(3, 0), SlotWindow::value(5, 0));
  EXPECT_EQ(SlotWindow::value(3, 7) + SlotWindow::value(5, 7), SlotWindow::value(8, 7));
  for (std::uint32_t psn = 1; psn < 100'000; ++psn)
    ASSERT_NE(SlotWindow::value(3, psn) + SlotWindow::value(5, 0), SlotWindow::value(8, psn));
}

}  // namespace
}  // namespace netsim::slot_window_test
