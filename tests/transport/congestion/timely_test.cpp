// TIMELY's rules by hand at 100 Gb/s.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/congestion_driver.h"

namespace netsim::timely_test {
namespace {

class Timely {
 public:
  explicit Timely(const std::string& yaml) : driver(yaml, 100 * kGbps) {}
  // The first ACK of a new round trip.
  BitRate round(Time rtt) {
    now_ += rtt;
    psn_ = next_psn_ + 1;
    next_psn_ = psn_ + 10;
    driver.ack(now_, psn_, next_psn_, 0, rtt);
    return driver.rate();
  }
  // Another one of the same round trip.
  BitRate same_round(Time rtt) {
    driver.ack(now_, psn_ + 1, next_psn_, 0, rtt);
    return driver.rate();
  }
  CongestionDriver driver;

 private:
  Time now_ = 0;
  std::uint32_t psn_ = 0, next_psn_ = 0;
};

TEST(Timely, AboveTHighTheRateFallsWhateverTheGradient) {
  Timely timely("timely");
  EXPECT_EQ(timely.round(kMillisecond), 100 * kGbps) << "the first round trip is only remembered";
  EXPECT_EQ(timely.round(kMillisecond), 60 * kGbps);  // 1 - 0.8 (1 - 500 / 1000)
}

TEST(Timely, BelowTLowItRisesAndAfterFiveTimesFaster) {
  Timely timely("timely");
  timely.round(kMillisecond);
  BitRate expected = timely.round(kMillisecond);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(timely.round(40 * kMicrosecond), expected += 100 * kMbps) << i;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(timely.round(40 * kMicrosecond), expected += 500 * kMbps) << i;
  timely.round(kMillisecond);
  expected = timely.driver.rate();
  EXPECT_EQ(timely.round(40 * kMicrosecond), expected + 100 * kMbps) << "a decrease starts the count again";
}

TEST(Timely, BetweenThemTheGradientDecides) {
  Timely timely("{kind: timely, alpha: 0.5}");
  timely.round(100 * kMicrosecond);
  EXPECT_EQ(timely.round(110 * kMicrosecond), 80 * kGbps);      // d = 5 us, gradient 1/4
  EXPECT_EQ(timely.round(105 * kMicrosecond), 80'100 * kMbps);  // d = 0
  EXPECT_EQ(timely.round(145 * kMicrosecond), 16'020 * kMbps);  // d = 20 us, gradient 1
  EXPECT_EQ(timely.round(225 * kMicrosecond), 100 * kMbps) << "d = 50 us, nothing kept: the floor";
}

TEST(Timely, OncePerRoundTrip) {
  Timely timely("timely");
  timely.round(kMillisecond);
  timely.round(kMillisecond);
  EXPECT_EQ(timely.same_round(kMillisecond), 60 * kGbps);
  EXPECT_EQ(timely.same_round(40 * kMicrosecond), 60 * kGbps);
  EXPECT_EQ(timely.round(0), 60 * kGbps) << "no timestamp";
}

TEST(Timely, TheClockIsNoFinerThanItsResolution) {
  Timely exact("{kind: timely, resolution: 1 ps, alpha: 1}"), coarse("{kind: timely, alpha: 1}");
  for (Timely* t : {&exact, &coarse}) {
    t->round(kMillisecond);
    t->round(kMillisecond);
    t->round(60 * kMicrosecond);
  }
  const BitRate before = exact.driver.rate();
  EXPECT_LT(exact.round(60 * kMicrosecond + 900), before);
  EXPECT_EQ(coarse.round(60 * kMicrosecond + 900), before + 100 * kMbps);
}

TEST(Timely, Needs) {
  const CongestionNeeds needs = CongestionDriver("{kind: timely, header: 8}", kGbps).needs();
  EXPECT_TRUE(needs.acks && needs.timestamps);
  EXPECT_EQ(needs.data_header, 8u);
  EXPECT_EQ(needs.ack_header, 8u);
  EXPECT_THROW(CongestionDriver("{kind: timely, t_low: 2 ms}", kGbps), ConfigError);
}

}  // namespace
}  // namespace netsim::timely_test
