// Tests which packets a member of a pool of slots sends, and when it sends them again.
#include "sim/transport/sender/slot_window.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
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
  EXPECT_TRUE(slots.take_sum(2, false));
  EXPECT_EQ(sent(slots), (Numbers{6}));
  EXPECT_TRUE(slots.take_sum(6, false));
  EXPECT_FALSE(slots.take_sum(6, false)) << "again";
  EXPECT_FALSE(slots.take_sum(2, false)) << "again";
  EXPECT_EQ(sent(slots), (Numbers{10}));
  EXPECT_FALSE(slots.has_sum(0));
  EXPECT_TRUE(slots.take_sum(0, false));
  EXPECT_TRUE(slots.has_sum(0));
  EXPECT_TRUE(slots.take_sum(10, false));
  EXPECT_EQ(sent(slots), (Numbers{4})) << "the slot of 10 has no packet before the end";
  slots.extend(15);
  EXPECT_EQ(sent(slots), (Numbers{14}));
}

TEST(SlotWindow, SendsAgainAfterTheTimeoutInTheOrderOfSending) {
  SlotWindow slots = window(4);
  slots.extend(4);
  EXPECT_EQ(slots.due(), kNever);
  sent(slots, 0);
  EXPECT_TRUE(slots.take_sum(1, false));
  EXPECT_EQ(slots.due(), kTimeout);
  EXPECT_EQ(slots.time_out(kTimeout - 1), 0U);
  EXPECT_EQ(slots.time_out(kTimeout), 3U);
  EXPECT_EQ(slots.next(), 0U);
  EXPECT_TRUE(slots.take(kTimeout)) << "it was sent before";
  EXPECT_TRUE(slots.take_sum(2, false)) << "the first copy was only late";
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
  EXPECT_TRUE(slots.take_sum(0, false));
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

// Returns a window of 8 packets in messages of 4.
SlotWindow messages() { return {AggregationPool{.slots = 8, .timeout = kTimeout, .message = 4}, 1}; }

TEST(SlotWindow, MovesByWholeMessages) {
  SlotWindow window = messages();
  window.extend(14);
  EXPECT_EQ(sent(window), (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
  for (std::uint32_t psn = 0; psn < 3; ++psn) EXPECT_TRUE(window.take_sum(psn, false));
  EXPECT_FALSE(window.has_ready());
  EXPECT_TRUE(window.take_sum(3, false));
  EXPECT_EQ(sent(window), (Numbers{8, 9, 10, 11}));
  for (std::uint32_t psn = 4; psn < 14; ++psn) {
    sent(window);
    EXPECT_TRUE(window.take_sum(psn, false));
    EXPECT_TRUE(window.has_sum(psn));
  }
  // All is there, so the next packets need not wait for the rest of message 12.
  window.extend(30);
  EXPECT_EQ(sent(window), (Numbers{14, 15, 16, 17, 18, 19, 20, 21}));
}

TEST(SlotWindow, GoesBackOnceForEachGap) {
  SlotWindow window = messages();
  window.extend(8);
  EXPECT_EQ(sent(window).size(), 8U);
  EXPECT_TRUE(window.take_sum(0, false));
  EXPECT_FALSE(window.take_sum(2, false)) << "the sum of 1 is missing";
  EXPECT_EQ(window.next(), 1U);
  EXPECT_TRUE(window.take(1)) << "it was sent before";
  EXPECT_FALSE(window.take_sum(3, false)) << "dropped";
  EXPECT_EQ(sent(window), (Numbers{2, 3, 4, 5, 6, 7})) << "the gap is reported once";
  EXPECT_FALSE(window.take_sum(0, false)) << "again";
  EXPECT_TRUE(window.take_sum(1, false));
  EXPECT_FALSE(window.take_sum(4, false)) << "a new gap";
  EXPECT_EQ(sent(window), (Numbers{2, 3, 4, 5, 6, 7}));
}

TEST(SlotWindow, GoesBackAfterATimeout) {
  SlotWindow window = messages();
  window.extend(3);
  sent(window);
  EXPECT_EQ(window.due(), kTimeout);
  EXPECT_EQ(window.time_out(kTimeout - 1), 0U);
  EXPECT_TRUE(window.take_sum(0, false));
  EXPECT_EQ(window.time_out(kTimeout), 1U);
  EXPECT_EQ(sent(window, kTimeout), (Numbers{1, 2}));
  EXPECT_EQ(window.due(), 2 * kTimeout);
}

TEST(SlotWindow, CountsRoundsSinceTheLastSum) {
  SlotWindow window = messages();
  window.extend(8);
  Time now = 0;
  for (std::uint64_t round = 0; round < 5; ++round) {
    sent(window, now);
    EXPECT_EQ(window.fruitless_rounds(), round);
    now = window.due();
    EXPECT_EQ(window.time_out(now), 1U);
  }
  sent(window, now);
  EXPECT_TRUE(window.take_sum(0, false));
  EXPECT_EQ(window.fruitless_rounds(), 0U);

  SlotWindow slots = netsim::slot_window_test::window(4);
  slots.extend(4);
  for (std::uint64_t round = 0; round < 3; ++round, now += kTimeout) {
    sent(slots, now);
    EXPECT_EQ(slots.fruitless_rounds(), round) << "all four packets were sent again so often";
    EXPECT_EQ(slots.time_out(now + kTimeout), 4U);
  }
  EXPECT_TRUE(slots.take_sum(3, false));
  EXPECT_EQ(slots.fruitless_rounds(), 0U);
}

// A protocol whose switches send on unfinished sums.
class Unfinished final : public SwitchProtocol {
 public:
  std::uint32_t kept(std::uint32_t slots) const override { return slots; }
  std::unique_ptr<SwitchSums> sums(const Group&) const override { return nullptr; }
  bool leaves_unfinished() const override { return true; }
};

TEST(SlotWindow, SendsNothingAgainWhereSumsLeaveUnfinished) {
  SlotWindow window{{.slots = 2, .timeout = kTimeout, .protocol = std::make_shared<Unfinished>()}, 1};
  window.extend(2);
  EXPECT_EQ(sent(window), (Numbers{0, 1}));
  EXPECT_EQ(window.due(), kNever);
  EXPECT_EQ(window.time_out(2 * kTimeout), 0U);
  EXPECT_FALSE(window.repairs());
}

}  // namespace
}  // namespace netsim::slot_window_test
