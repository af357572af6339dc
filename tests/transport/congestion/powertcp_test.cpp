// PowerTCP's rules by hand, on paths whose switches send at 100 Gb/s, T 8 us: 100,000 B fill the path.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/congestion_driver.h"

namespace netsim::powertcp_test {
namespace {

class PowerTcp {
 public:
  explicit PowerTcp(const std::string& yaml) : driver(yaml, 100 * kGbps) {}
  // An ACK of the packet that saw these hops; `new_round`: of one sent since the last such ACK.
  void ack(const std::vector<TelemetryHop>& hops, bool new_round = true) {
    now_ += kMicrosecond;
    send(hops, 0, new_round);
  }
  // Sends an ACK without telemetry, `elapsed` after the one before.
  void ack_rtt(Time elapsed, Time rtt, bool new_round = true) {
    now_ += elapsed;
    send({}, rtt, new_round);
  }
  CongestionDriver driver;

 private:
  void send(const std::vector<TelemetryHop>& hops, Time rtt, bool new_round) {
    if (new_round) psn_ = next_psn_ + 1;
    next_psn_ = psn_ + 10;
    Feedback f;
    f.acknowledged_psn = psn_;
    f.packets = 1;
    f.rtt = rtt;
    f.hops = hops;
    driver.ack(now_, f, next_psn_);
  }
  Time now_ = 0;
  std::uint32_t psn_ = 0, next_psn_ = 0;
};

// A hop 8 us = T after the one before, which sent `bytes` in all by then.
TelemetryHop hop(int round, Bytes sent, Bytes queue = 0) {
  return {kMillisecond + round * 8 * kMicrosecond, sent, queue, 100 * kGbps};
}

// The rule as the paper prints it: no target below the equilibrium, nothing added, no averaging of windows.
const std::string kPlain = "{kind: powertcp, eta: 1, rate_ai: 0, gamma: 1}";

TEST(PowerTcp, StartsAtLineRateWithAFullPipe) {
  const PowerTcp power("powertcp");
  EXPECT_EQ(power.driver.rate(), 100 * kGbps);
  EXPECT_EQ(power.driver.window(), 100'000);
  EXPECT_EQ(CongestionDriver("{kind: powertcp, base_rtt: 4160 ns}", 100 * kGbps).window(), 52'000);
}

// 0.9 (100,000 x 0.95 + 600) + 0.1 x 100,000: beta is 600 Mb/s for 8 us.
TEST(PowerTcp, AFullLinkWithoutQueueIsTheEquilibrium) {
  PowerTcp power("powertcp");
  power.ack({hop(0, 0)});
  EXPECT_EQ(power.driver.rate(), 100 * kGbps) << "the first telemetry is only remembered";
  power.ack({hop(1, 100'000)});
  EXPECT_NEAR(static_cast<double>(power.driver.window()), 96'040, 1);
  EXPECT_EQ(power.driver.rate(), 96'040 * kMbps);
  PowerTcp plain(kPlain);
  plain.ack({hop(0, 0)});
  plain.ack({hop(1, 100'000)});
  EXPECT_EQ(plain.driver.window(), 100'000);
}

// A queue that grows by 50,000 B in T: current 1.5, voltage 1.5. The same queue a round later: 1 x 1.5. It
// drains in the next: current 0.5, voltage 1.
TEST(PowerTcp, CurrentIsTheQueuesGrowthAndVoltageItsLength) {
  PowerTcp power(kPlain);
  power.ack({hop(0, 0)});
  power.ack({hop(1, 100'000, 50'000)});
  EXPECT_EQ(power.driver.window(), static_cast<Bytes>(100'000 / 2.25));
  power.ack({hop(2, 200'000, 50'000)});
  EXPECT_EQ(power.driver.window(), static_cast<Bytes>(100'000 / 2.25 / 1.5));
  power.ack({hop(3, 300'000, 0)});
  EXPECT_EQ(power.driver.window(), static_cast<Bytes>(100'000 / 2.25 / 1.5 / 0.5));
}

TEST(PowerTcp, ReadingsOfLessThanARoundTripWeighLess) {
  PowerTcp power(kPlain);
  power.ack({{kMillisecond, 0, 0, 100 * kGbps}});
  power.ack({{kMillisecond + 2 * kMicrosecond, 50'000, 0, 100 * kGbps}});  // power 2 for T / 4
  EXPECT_EQ(power.driver.window(), 80'000);
}

// Power 2 in each reading. The reference stays that of the round's beginning.
TEST(PowerTcp, WithinARoundTheWindowStartsFromTheSameReference) {
  PowerTcp power(kPlain);
  power.ack({hop(0, 0)});
  power.ack({hop(1, 200'000)});
  EXPECT_EQ(power.driver.window(), 50'000);
  for (int i = 2; i < 5; ++i) {
    power.ack({hop(i, i * 200'000)}, false);
    EXPECT_EQ(power.driver.window(), 25'000) << i;
  }
  power.ack({hop(5, 1'000'000)});
  EXPECT_EQ(power.driver.window(), 25'000) << "the new round's ACK is about the reference of the old one";
  power.ack({hop(6, 1'200'000)}, false);
  EXPECT_EQ(power.driver.window(), 12'500);
}

// gamma 0.5: half of what power asks for, half of what there was.
TEST(PowerTcp, GammaAveragesWithTheWindowThatThereIs) {
  PowerTcp power("{kind: powertcp, eta: 1, rate_ai: 1 Gbps, gamma: 0.5}");
  power.ack({hop(0, 0)});
  power.ack({hop(1, 200'000)});
  EXPECT_EQ(power.driver.window(), 75'500);  // (50,000 + 1,000) / 2 + 50,000
  power.ack({hop(2, 400'000)}, false);
  EXPECT_EQ(power.driver.window(), 57'125);  // (37,750 + 1,000) / 2 + 37,750
}

TEST(PowerTcp, TheHopWithTheMostPowerDecides) {
  PowerTcp power(kPlain);
  power.ack({hop(0, 0), hop(0, 0)});
  power.ack({hop(1, 10'000), hop(1, 200'000)});
  EXPECT_EQ(power.driver.window(), 50'000);
}

TEST(PowerTcp, WhatCannotBeComparedIsOnlyRemembered) {
  PowerTcp power(kPlain);
  power.ack({hop(0, 0)});
  power.ack({hop(1, 200'000), hop(1, 200'000)});  // another path
  EXPECT_EQ(power.driver.window(), 100'000);
  power.ack({hop(0, 400'000), hop(2, 400'000)});  // packets overtook each other
  EXPECT_EQ(power.driver.window(), 100'000);
  power.ack({hop(1, 600'000), hop(3, 600'000)});
  EXPECT_EQ(power.driver.window(), 50'000);
}

// The port has sent 2^32 - 100,000 B before, and wraps.
TEST(PowerTcp, SentBytesMayWrap) {
  PowerTcp power(kPlain);
  const Bytes before = (Bytes{1} << 32) - 100'000;
  power.ack({hop(0, before)});
  power.ack({hop(1, before + 200'000)});
  EXPECT_EQ(power.driver.window(), 50'000);
  // After 400 ms at 100 Gb/s more than 2^32 B may have been sent.
  power.ack({{kSecond, before + 300'000, 0, 100 * kGbps}});
  EXPECT_EQ(power.driver.window(), 50'000);
}

TEST(PowerTcp, TheWindowStaysBetweenFloorAndLine) {
  PowerTcp power("{kind: powertcp, eta: 1, rate_ai: 0, gamma: 1, minimum_rate: 1 Gbps}");
  power.ack({hop(0, 0)});
  power.ack({hop(1, 100'000, 4'000'000'000)});
  EXPECT_EQ(power.driver.rate(), kGbps);
  power.ack({hop(2, 100'000, 0)});
  EXPECT_EQ(power.driver.rate(), 100 * kGbps) << "nothing arrived for a round trip";
}

const std::string kTheta = "{kind: powertcp, form: delay, rtt_margin: 1, rate_ai: 0, gamma: 1}";

// The round trip rises from 8 to 12 us in 8 us: (0.5 + 1) x 12 / 8.
TEST(ThetaPowerTcp, PowerIsTheSlopeAndTheLengthOfTheRoundTrip) {
  PowerTcp power(kTheta);
  power.ack_rtt(8 * kMicrosecond, 8 * kMicrosecond);
  EXPECT_EQ(power.driver.window(), 100'000);
  power.ack_rtt(8 * kMicrosecond, 12 * kMicrosecond);
  EXPECT_EQ(power.driver.window(), static_cast<Bytes>(100'000 / 2.25));
  power.ack_rtt(8 * kMicrosecond, 12 * kMicrosecond);
  EXPECT_EQ(power.driver.window(), static_cast<Bytes>(100'000 / 2.25 / 1.5));
  power.ack_rtt(8 * kMicrosecond, 6 * kMicrosecond);  // slope 0.25, taken for 0.5: 0.5 x 6 / 8
  EXPECT_EQ(power.driver.window(), static_cast<Bytes>(100'000 / 2.25 / 1.5 / 0.375));
}

// An ACK after T / 4 with the slope 1 and 10 us: 2 x 10 / 8 = 2.5 for a quarter. The next ends the round, 1
// us later with the same round trip: 1.25 for an eighth.
TEST(ThetaPowerTcp, TheWindowMovesOnceARoundTripAndPowerWithEachAck) {
  PowerTcp power(kTheta);
  power.ack_rtt(8 * kMicrosecond, 8 * kMicrosecond);
  power.ack_rtt(2 * kMicrosecond, 10 * kMicrosecond, false);
  EXPECT_EQ(power.driver.window(), 100'000);
  power.ack_rtt(kMicrosecond, 10 * kMicrosecond);
  const double smoothed = (1 * 0.75 + 2.5 * 0.25) * 0.875 + 1.25 * 0.125;
  EXPECT_EQ(power.driver.window(), static_cast<Bytes>(100'000 / smoothed));
}

// An idle path: 0.7 (100,000 x 1.05 + 600) + 0.3 x 100,000 is more than the line's window.
TEST(ThetaPowerTcp, AnIdlePathKeepsTheLineRate) {
  PowerTcp power("{kind: powertcp, form: delay}");
  for (int i = 0; i < 5; ++i) power.ack_rtt(8 * kMicrosecond, 8 * kMicrosecond);
  EXPECT_EQ(power.driver.rate(), 100 * kGbps);
  PowerTcp queued("{kind: powertcp, form: delay}");
  queued.ack_rtt(8 * kMicrosecond, 8 * kMicrosecond);
  queued.ack_rtt(8 * kMicrosecond, 16 * kMicrosecond);  // 2 x 2 / 1.05
  EXPECT_EQ(queued.driver.window(), static_cast<Bytes>(0.7 * (100'000 * 1.05 / 4 + 600) + 30'000));
}

TEST(PowerTcp, NeedsTelemetryOrTimestampsAndFewBytes) {
  const CongestionNeeds in_band = CongestionDriver("powertcp", 100 * kGbps).needs();
  EXPECT_TRUE(in_band.telemetry);
  EXPECT_FALSE(in_band.timestamps);
  EXPECT_EQ(in_band.data_header, 42u);
  EXPECT_LE(in_band.state_bytes, 128u);
  const CongestionNeeds delay = CongestionDriver("{kind: powertcp, form: delay}", 100 * kGbps).needs();
  EXPECT_FALSE(delay.telemetry);
  EXPECT_TRUE(delay.timestamps);
  EXPECT_EQ(delay.data_header, 0u);
}

}  // namespace
}  // namespace netsim::powertcp_test
