// HPCC's rules by hand, on a path of one switch: 100 Gb/s, T 8 us, so that W is 100,000 B at line rate.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/congestion_driver.h"

namespace netsim::hpcc_test {
namespace {

class Hpcc {
 public:
  explicit Hpcc(const std::string& yaml) : driver(yaml, 100 * kGbps) {}
  // An ACK of the packet that saw these hops; `new_round`: of one sent since the last such ACK.
  void ack(const std::vector<TelemetryHop>& hops, bool new_round = true) {
    now_ += kMicrosecond;
    if (new_round) psn_ = next_psn_ + 1;
    next_psn_ = psn_ + 10;
    Feedback f;
    f.acknowledged_psn = psn_;
    f.packets = 1;
    f.hops = hops;
    driver.ack(now_, f, next_psn_);
  }
  CongestionDriver driver;

 private:
  Time now_ = 0;
  std::uint32_t psn_ = 0, next_psn_ = 0;
};

// A hop 8 us = T after the one before, which sent `bytes` in the meantime.
TelemetryHop hop(int round, Bytes sent, Bytes queue = 0) {
  return {kMillisecond + round * 8 * kMicrosecond, sent, queue, 100 * kGbps};
}

TEST(Hpcc, StartsAtLineRateWithAFullPipe) {
  const Hpcc hpcc("hpcc");
  EXPECT_EQ(hpcc.driver.rate(), 100 * kGbps);
  EXPECT_EQ(hpcc.driver.window(), 100'000);
  EXPECT_EQ(CongestionDriver("{kind: hpcc, base_rtt: 4160 ns}", 100 * kGbps).window(), 52'000);
}

TEST(Hpcc, AFullLinkIsBroughtToEta) {
  Hpcc hpcc("hpcc");
  hpcc.ack({hop(0, 0)});
  EXPECT_EQ(hpcc.driver.rate(), 100 * kGbps) << "the first telemetry is only remembered";
  hpcc.ack({hop(1, 100'000)});
  EXPECT_EQ(hpcc.driver.rate(), 95'040 * kMbps);  // 0.95 of it and 40 Mb/s
  EXPECT_EQ(hpcc.driver.window(), 95'040);
}

TEST(Hpcc, QueuesCountWithTheSmallerOfTwoReadings) {
  Hpcc hpcc("{kind: hpcc, rate_ai: 0}");
  hpcc.ack({hop(0, 0, 50'000)});
  hpcc.ack({hop(1, 100'000, 90'000)});  // u = 1 + 50,000 / 100,000
  EXPECT_EQ(hpcc.driver.rate(), std::llround(100e9 * 0.95 / 1.5));
}

TEST(Hpcc, ReadingsOfLessThanARoundTripWeighLess) {
  Hpcc hpcc("{kind: hpcc, rate_ai: 0}");
  hpcc.ack({{kMillisecond, 0, 0, 100 * kGbps}});
  hpcc.ack({{kMillisecond + 2 * kMicrosecond, 50'000, 0, 100 * kGbps}});  // u = 2 for T / 4
  EXPECT_EQ(hpcc.driver.rate(), std::llround(100e9 * 0.95 / 1.25));
}

TEST(Hpcc, FastReactionStartsFromTheSameReference) {
  Hpcc hpcc("hpcc");
  hpcc.ack({hop(0, 0)});
  hpcc.ack({hop(1, 100'000)});
  for (int i = 2; i < 5; ++i) {
    hpcc.ack({hop(i, i * 100'000)}, false);
    EXPECT_EQ(hpcc.driver.rate(), std::llround(95.04e9 * 0.95 + 40e6)) << i;
  }
  Hpcc slow("{kind: hpcc, fast_reaction: false}");
  slow.ack({hop(0, 0)});
  slow.ack({hop(1, 100'000)});
  slow.ack({hop(2, 200'000)}, false);
  EXPECT_EQ(slow.driver.rate(), 95'040 * kMbps);
}

TEST(Hpcc, AfterMaxStageAdditiveStepsTheRateFollowsTheUtilisation) {
  Hpcc hpcc("{kind: hpcc, max_stage: 3}");
  hpcc.ack({hop(0, 0)});
  hpcc.ack({hop(1, 200'000)});
  BitRate expected = 47'540 * kMbps;
  EXPECT_EQ(hpcc.driver.rate(), expected);
  for (int i = 2; i < 5; ++i) {
    hpcc.ack({hop(i, 200'000 + (i - 1) * 76'000)});  // u = 0.76, k = 0.8
    EXPECT_EQ(hpcc.driver.rate(), expected += 40 * kMbps) << i;
  }
  hpcc.ack({hop(5, 200'000 + 4 * 76'000)});
  EXPECT_EQ(hpcc.driver.rate(), std::llround(47.66e9 / 0.8 + 40e6));
}

TEST(Hpcc, TheBusiestHopDecidesAndPerHopRatesTakeTheSmallest) {
  for (const std::string rates : {"single", "per_hop"}) {
    Hpcc hpcc("{kind: hpcc, rate_ai: 0, rates: " + rates + "}");
    hpcc.ack({hop(0, 0), hop(0, 0)});
    hpcc.ack({hop(1, 10'000), hop(1, 190'000)});
    EXPECT_EQ(hpcc.driver.rate(), 50 * kGbps) << rates;
  }
}

TEST(Hpcc, TheHeadersFieldsAreCoarseAndWrap) {
  Hpcc hpcc("{kind: hpcc, quantise: true, unit_multiplier: 1, rate_ai: 0}");
  const Time wrap = (1 << 24) * kNanosecond;
  // 100,000 B are 781 units of 128 B; a queue of 79 B reads 0; the clock wraps in between.
  hpcc.ack({{wrap - 3 * kMicrosecond, 0, 79, 100 * kGbps}});
  hpcc.ack({{wrap + 5 * kMicrosecond, 100'000, 79, 100 * kGbps}});
  EXPECT_EQ(hpcc.driver.rate(), std::llround(100e9 * 0.95 / 0.99968));
  // 2^20 units of 128 B later and 100,096 B more (782 units).
  hpcc.ack({{wrap + 13 * kMicrosecond, 100'000 + (Bytes{128} << 20) + 100'096, 79, 100 * kGbps}});
  EXPECT_EQ(hpcc.driver.rate(), std::llround(100e9 * 0.95 / 0.99968 * 0.95 / 1.00096));
}

TEST(Hpcc, AnotherPathIsOnlyRemembered) {
  Hpcc hpcc("hpcc");
  hpcc.ack({hop(0, 0)});
  hpcc.ack({hop(1, 100'000)});
  hpcc.ack({hop(2, 0), hop(2, 0)});
  EXPECT_EQ(hpcc.driver.rate(), 95'040 * kMbps);
  hpcc.ack({hop(1, 0), hop(1, 0)});  // backwards
  EXPECT_EQ(hpcc.driver.rate(), 95'040 * kMbps);
  hpcc.ack({});  // no switch on the way
  EXPECT_EQ(hpcc.driver.rate(), 95'040 * kMbps);
  hpcc.ack({hop(2, 100'000), hop(2, 100'000)});
  EXPECT_EQ(hpcc.driver.rate(), std::llround(95.04e9 * 0.95 + 40e6));
}

TEST(Hpcc, AsksForTelemetryAndItsHeaders) {
  const CongestionNeeds needs = CongestionDriver("{kind: hpcc, ack_header: 28}", kGbps).needs();
  EXPECT_TRUE(needs.acks && needs.telemetry && needs.pace_again);
  EXPECT_EQ(needs.data_header, 42u);
  EXPECT_EQ(needs.ack_header, 28u);
  EXPECT_EQ(needs.cnp_interval, kNever);
}

TEST(Hpcc, NeverBelowTheFloor) {
  Hpcc hpcc("{kind: hpcc, minimum_rate: 1 Gbps}");
  hpcc.ack({hop(0, 0, 10'000'000)});
  for (int i = 1; i < 10; ++i) hpcc.ack({hop(i, i * 100'000, 10'000'000)});
  EXPECT_EQ(hpcc.driver.rate(), kGbps);
  EXPECT_EQ(hpcc.driver.window(), 1'000);
}

}  // namespace
}  // namespace netsim::hpcc_test
