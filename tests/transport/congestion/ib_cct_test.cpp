// InfiniBand's congestion control by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/support/congestion_driver.h"

namespace netsim::ib_cct_test {
namespace {

TEST(IbCct, ABecnWalksUpTheTableAndTheTimerDown) {
  CongestionDriver driver("{kind: ib_cct, table: linear, delay_step: 1, ccti_timer: 10 us, ccti_limit: 3}",
                          120 * kGbps);
  driver.cnp(1 * kMicrosecond);
  EXPECT_EQ(driver.rate(), 60 * kGbps);
  driver.cnp(2 * kMicrosecond);
  EXPECT_EQ(driver.rate(), 40 * kGbps);
  for (Time t = 3; t < 10; ++t) driver.cnp(t * kMicrosecond);
  EXPECT_EQ(driver.rate(), 30 * kGbps) << "ccti_limit";
  driver.advance(11 * kMicrosecond - 1);
  EXPECT_EQ(driver.rate(), 30 * kGbps);
  driver.advance(11 * kMicrosecond);
  EXPECT_EQ(driver.rate(), 40 * kGbps) << "the timer runs from the first BECN";
  driver.advance(21 * kMicrosecond);
  EXPECT_EQ(driver.rate(), 60 * kGbps);
  driver.advance(31 * kMicrosecond);
  EXPECT_EQ(driver.rate(), 120 * kGbps);
  EXPECT_EQ(driver.timers(), 0u);
}

TEST(IbCct, IncreaseAndMinimum) {
  CongestionDriver driver(
      "{kind: ib_cct, table: linear, delay_step: 1, ccti_increase: 4, ccti_min: 1, ccti_limit: 8}",
      120 * kGbps);
  EXPECT_EQ(driver.rate(), 60 * kGbps);
  driver.cnp(0);
  EXPECT_EQ(driver.rate(), 20 * kGbps);
  driver.advance(kSecond);
  EXPECT_EQ(driver.rate(), 60 * kGbps);
}

TEST(IbCct, Tables) {
  const auto after_three = [](const std::string& table) {
    CongestionDriver driver("{kind: ib_cct, delay_step: 0.5, table: " + table + "}", 100 * kGbps);
    for (int i = 0; i < 3; ++i) driver.cnp(i);
    return driver.rate();
  };
  EXPECT_EQ(after_three("linear"), 40 * kGbps);
  EXPECT_EQ(after_three("quadratic"), std::llround(100e9 / 5.5));
  EXPECT_EQ(after_three("exponential"), std::llround(100e9 / 3.375));  // 1.5^3, in eighths
}

TEST(IbCct, EntriesAreHeldInFourteenBitsAndAShift) {
  const auto first = [](const std::string& step) {
    CongestionDriver driver("{kind: ib_cct, table: linear, delay_step: " + step + "}", 100 * kGbps);
    driver.cnp(0);
    return driver.rate();
  };
  EXPECT_EQ(first("0.3"), 80 * kGbps);                        // 2/8
  EXPECT_EQ(first("3000.3"), std::llround(100e9 / 3001.25));  // 12,001/4
  EXPECT_EQ(first("16000.4"), std::llround(100e9 / 16'001));  // 16,000/1
  EXPECT_EQ(first("0.05"), 100 * kGbps);                      // nothing
}

TEST(IbCct, ABecnForEveryFecn) {
  EXPECT_EQ(CongestionDriver("ib_cct", kGbps).needs().cnp_interval, 0);
  EXPECT_THROW(CongestionDriver("{kind: ib_cct, ccti_min: 200}", kGbps), ConfigError);
}

}  // namespace
}  // namespace netsim::ib_cct_test
