// Swift's rules by hand: 100 Gb/s, base RTT 8 us, packets of 1,000 B, one switch; so 100 packets fill the
// path.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/support/congestion_driver.h"

namespace netsim {
namespace {

constexpr Time kTarget = 20 * kMicrosecond + 3053 * kNanosecond;

TEST(Swift, StartsWithAFullPathAndAddsOnePacketPerRoundTrip) {
  CongestionDriver driver("swift", 100 * kGbps);
  EXPECT_EQ(driver.window(), 100'000);
  EXPECT_EQ(driver.rate(), 100 * kGbps);
  driver.ack(10 * kMicrosecond, 1, 100, 0, 10 * kMicrosecond);
  EXPECT_EQ(driver.window(), 100'010);  // 1 / 100 of a packet
}

TEST(Swift, DecreasesWithTheDelayAboveTheTargetOncePerRoundTrip) {
  CongestionDriver driver("swift", 100 * kGbps);
  const Time rtt = kTarget * 5 / 4;  // no flow scaling at 100 packets: 1/5 of it is too much, times 0.8
  driver.ack(rtt, 1, 100, 0, rtt);
  EXPECT_EQ(driver.window(), 84'000);
  driver.ack(2 * rtt - 1, 2, 100, 0, rtt);
  EXPECT_EQ(driver.window(), 84'000);
  driver.ack(2 * rtt, 3, 100, 0, 100 * kMillisecond);
  EXPECT_EQ(driver.window(), 84'000) << "the round trip is the delay just measured";
  driver.ack(200 * kMillisecond, 4, 100, 0, 100 * kMillisecond);
  EXPECT_EQ(driver.window(), 42'000) << "at most max_mdf";
}

TEST(Swift, BelowOnePacketItPaces) {
  CongestionDriver driver("{kind: swift, initial_window: 1 kB, fs_range: 0}", 100 * kGbps);
  driver.ack(kMillisecond, 1, 2, 0, kMillisecond);
  EXPECT_EQ(driver.window(), 500);
  EXPECT_EQ(driver.rate(), 4 * kMbps);  // a packet of 1,000 B every 2 ms
  driver.ack(2 * kMillisecond, 2, 3, 0, kMillisecond);
  EXPECT_EQ(driver.window(), 250);
  EXPECT_EQ(driver.rate(), 2 * kMbps);
  driver.ack(3 * kMillisecond, 3, 4, 0, 10 * kMicrosecond);
  EXPECT_EQ(driver.window(), 1250) << "below a packet an ACK adds ai";
  EXPECT_EQ(driver.rate(), 100 * kGbps);
}

TEST(Swift, SmallWindowsAreAllowedMoreDelay) {
  // At one packet: (1 - 1/10) / (sqrt(10) - 1/10) of 100 us.
  const auto scaling = static_cast<Time>(100e6 * 0.9 / (std::sqrt(10.0) - 0.1));
  for (const Time extra : {-kNanosecond, kNanosecond}) {
    CongestionDriver driver("{kind: swift, initial_window: 1 kB}", 100 * kGbps);
    const Time rtt = kTarget + scaling + extra;
    driver.ack(rtt, 1, 2, 0, rtt);
    EXPECT_EQ(driver.window() > 1000, extra < 0) << extra;
  }
}

TEST(Swift, StaysWithinItsLimits) {
  CongestionDriver driver("{kind: swift, max_cwnd: 10, min_cwnd: 0.5}", 100 * kGbps);
  EXPECT_EQ(driver.window(), 10'000);
  driver.ack(10 * kMicrosecond, 1, 9, 0, 10 * kMicrosecond);
  EXPECT_EQ(driver.window(), 10'000);
  for (int i = 1; i < 9; ++i) driver.ack(i * kSecond, 1, 9, 0, kSecond);
  EXPECT_EQ(driver.window(), 500);
}

TEST(Swift, Needs) {
  const CongestionNeeds needs = CongestionDriver("swift", kGbps).needs();
  EXPECT_TRUE(needs.acks && needs.timestamps);
  EXPECT_EQ(needs.data_header, 0u);
  EXPECT_THROW(CongestionDriver("{kind: swift, fs_min_cwnd: 200}", kGbps), ConfigError);
}

}  // namespace
}  // namespace netsim
