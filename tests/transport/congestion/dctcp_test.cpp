// DCTCP's rules by hand: 100 Gb/s, base RTT 8 us, packets of 1,000 B, so that 100 packets fill the path.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/support/congestion_driver.h"

namespace netsim::dctcp_test {
namespace {

TEST(Dctcp, WindowIsCutOncePerWindowOfData) {
  CongestionDriver driver("dctcp", 100 * kGbps);
  EXPECT_EQ(driver.window(), 100'000);
  driver.ack(1, 1, 100, 1);
  EXPECT_EQ(driver.window(), 50'000);  // alpha starts at 1
  driver.ack(2, 2, 101, 1);
  EXPECT_EQ(driver.window(), 50'000);
  for (std::uint32_t i = 3; i <= 100; ++i) driver.ack(i, i, 102, 0);
  EXPECT_EQ(driver.window(), 50'000);
  // The window ends with 2 of 101 packets marked, and this one is the third.
  driver.ack(101, 101, 103, 1);
  const double alpha = 15.0 / 16 + 3.0 / 101 / 16;
  EXPECT_EQ(driver.window(), static_cast<Bytes>(50'000 * (1 - alpha / 2)));
  EXPECT_EQ(driver.rate(), 100 * kGbps);
}

TEST(Dctcp, AWindowWithoutMarksAddsAPacketWhereTheWindowWasFull) {
  CongestionDriver driver("{kind: dctcp, initial_window: 4 kB}", 100 * kGbps);
  driver.ack(1, 1, 5, 0);
  EXPECT_EQ(driver.window(), 5'000);
  driver.ack(2, 5, 9, 0);
  EXPECT_EQ(driver.window(), 5'000) << "still the same window of data";
  driver.ack(3, 6, 10, 0);  // 4 packets in flight and this one
  EXPECT_EQ(driver.window(), 6'000);
  driver.ack(4, 11, 13, 0);  // 2 and this one: the application was the limit
  EXPECT_EQ(driver.window(), 6'000);
}

TEST(Dctcp, NeverBelowOnePacket) {
  CongestionDriver driver("dctcp", 100 * kGbps);
  for (std::uint32_t i = 1; i < 40; ++i) driver.ack(i, i, i, 1);
  EXPECT_EQ(driver.window(), 1'000);
}

TEST(Dctcp, RateForm) {
  CongestionDriver driver("{kind: dctcp, form: rate, rate_ai: 615 Mbps, minimum_rate: 1 Gbps}", 100 * kGbps);
  EXPECT_EQ(driver.window(), kNoWindow);
  driver.ack(1, 1, 4, 1);
  EXPECT_EQ(driver.rate(), 50 * kGbps);
  for (std::uint32_t i = 2; i <= 4; ++i) driver.ack(i, i, i + 3, 0);
  EXPECT_EQ(driver.rate(), 50 * kGbps);
  driver.ack(5, 5, 8, 0);  // the window ends, and with it the wait after the cut
  EXPECT_EQ(driver.rate(), 50'615 * kMbps);
  // alpha was 15/16 + 1/5/16; the next cut comes in the middle of a window and uses it.
  driver.ack(6, 6, 9, 1);
  EXPECT_EQ(driver.rate(), std::llround(50.615e9 * (1 - (15.0 / 16 + 0.2 / 16) / 2)));
  for (std::uint32_t i = 7; i < 300; ++i) driver.ack(i, i, i + 1, 1);
  EXPECT_EQ(driver.rate(), kGbps);
}

TEST(Dctcp, TheRatesStepIsAPacketPerRoundTrip) {
  CongestionDriver driver("{kind: dctcp, form: rate}", 100 * kGbps);
  driver.ack(1, 1, 2, 1);
  driver.ack(2, 3, 4, 0);
  EXPECT_EQ(driver.rate(), 51 * kGbps);  // 8,000 bit in 8 us
}

TEST(Dctcp, WantsMarksInAcks) {
  const CongestionNeeds needs = CongestionDriver("dctcp", kGbps).needs();
  EXPECT_TRUE(needs.acks && needs.ack_echo);
  EXPECT_EQ(needs.cnp_interval, kNever);
}

}  // namespace
}  // namespace netsim::dctcp_test
