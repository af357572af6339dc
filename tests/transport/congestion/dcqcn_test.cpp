// DCQCN's rules by hand; random traces are congestion_reference_test.cpp's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/support/congestion_driver.h"

namespace netsim::dcqcn_test {
namespace {

using ::testing::HasSubstr;

BitRate rounded(double rate) { return static_cast<BitRate>(std::llround(rate)); }

TEST(Dcqcn, VendorDecreasesOnAGridThatStartsAtTheFirstCnp) {
  CongestionDriver driver("dcqcn", 100 * kGbps);
  driver.cnp(0);
  driver.cnp(1'500 * kNanosecond);
  driver.advance(4 * kMicrosecond);
  EXPECT_EQ(driver.rate(), 100 * kGbps);
  driver.advance(4 * kMicrosecond + kNanosecond);
  // Alpha after 1, 2, 3 and 4 us: the first CNP does not count, the second does, in the second period.
  const double keep = 255.0 / 256, alpha = ((1 * keep) * keep + 1.0 / 256) * keep * keep;
  EXPECT_EQ(driver.rate(), rounded(100e9 * (1 - alpha / 2)));
  driver.advance(100 * kMicrosecond);
  EXPECT_EQ(driver.rate(), rounded(100e9 * (1 - alpha / 2))) << "no CNP, no decrease";
}

TEST(Dcqcn, VendorAimsAtTheRateBeforeTheFirstOfSeveralDecreases) {
  CongestionDriver driver("{kind: dcqcn, g: 1}", 100 * kGbps);  // alpha: was there a CNP in the last period?
  driver.cnp(0);
  driver.cnp(3'500 * kNanosecond);
  driver.advance(4'001 * kNanosecond);
  EXPECT_EQ(driver.rate(), 50 * kGbps);
  driver.cnp(7'500 * kNanosecond);
  driver.advance(8'001 * kNanosecond);
  EXPECT_EQ(driver.rate(), 25 * kGbps);
  driver.advance(308'000 * kNanosecond);
  EXPECT_EQ(driver.rate(), 25 * kGbps);
  driver.advance(308'001 * kNanosecond);
  EXPECT_EQ(driver.rate(), 62'500 * kMbps) << "fast recovery towards the line rate";
  driver.cnp(311'500 * kNanosecond);
  driver.advance(312'001 * kNanosecond);
  EXPECT_EQ(driver.rate(), 31'250 * kMbps);
  driver.advance(612'001 * kNanosecond);
  EXPECT_EQ(driver.rate(), 46'875 * kMbps) << "after an increase the target is the rate before the decrease";
  driver.advance(912'001 * kNanosecond);
  EXPECT_EQ(driver.rate(), (46'875 + 62'520) * kMbps / 2) << "one fast recovery step, then additive increase";
  driver.advance(1'212'001 * kNanosecond);
  EXPECT_EQ(driver.rate(), rounded((54'697.5e6 + 62'720e6) / 2)) << "then hyper increase";
}

TEST(Dcqcn, VendorIncreaseDueAtADecreaseComesFirst) {
  CongestionDriver driver("{kind: dcqcn, g: 1, increase_timer: 8 us}", 100 * kGbps);
  driver.cnp(0);
  driver.cnp(3'500 * kNanosecond);
  driver.advance(4'001 * kNanosecond);
  EXPECT_EQ(driver.rate(), 50 * kGbps);
  driver.cnp(11'500 * kNanosecond);
  driver.advance(12'001 * kNanosecond);
  EXPECT_EQ(driver.rate(), 37'500 * kMbps);
}

TEST(Dcqcn, PaperProfileHalvesAtTheFirstCnpAndRecoversInFiveSteps) {
  CongestionDriver driver("{kind: dcqcn, profile: sigcomm15}", 40 * kGbps);
  driver.cnp(10 * kMicrosecond);
  EXPECT_EQ(driver.rate(), 20 * kGbps);  // alpha starts at 1
  BitRate expected = 20 * kGbps;
  for (int step = 1; step <= 5; ++step) {
    driver.advance(10 * kMicrosecond + step * 55 * kMicrosecond);
    expected = (expected + 40 * kGbps) / 2;
    EXPECT_EQ(driver.rate(), expected) << step;
  }
  EXPECT_EQ(driver.needs().cnp_interval, 50 * kMicrosecond);
}

TEST(Dcqcn, PaperProfileCutsBeforeAlphaMovesAndDecaysWithoutCnps) {
  CongestionDriver driver("{kind: dcqcn, profile: sigcomm15, g: 0.5, increase_timer: 0}", 40 * kGbps);
  driver.cnp(0);
  driver.cnp(110 * kMicrosecond);  // two alpha periods of 55 us: alpha is a quarter
  EXPECT_EQ(driver.rate(), 17'500 * kMbps);
  driver.cnp(120 * kMicrosecond);  // (1 - g) / 4 + g = 5/8
  EXPECT_EQ(driver.rate(), rounded(17'500e6 * (1 - 5.0 / 16)));
}

TEST(Dcqcn, ByteCounterIncreasesToo) {
  CongestionDriver driver("{kind: dcqcn, profile: sigcomm15}", 40 * kGbps);
  ASSERT_TRUE(driver.needs().sent_bytes);
  driver.cnp(0);
  driver.sent(1 * kMicrosecond, 9'999'999);
  EXPECT_EQ(driver.rate(), 20 * kGbps);
  driver.sent(2 * kMicrosecond, 1);
  EXPECT_EQ(driver.rate(), 30 * kGbps);
}

TEST(Dcqcn, ZeroTurnsCountersOff) {
  CongestionDriver quiet("{kind: dcqcn, profile: sigcomm15, byte_counter: 0 B, increase_timer: 0}",
                         40 * kGbps);
  EXPECT_FALSE(quiet.needs().sent_bytes);
  quiet.cnp(0);
  EXPECT_EQ(quiet.timers(), 0u);
  CongestionDriver driver("{kind: dcqcn, byte_counter: 1 MB, minimum_rate: 0}", 40 * kGbps);
  EXPECT_TRUE(driver.needs().sent_bytes);
}

TEST(Dcqcn, NeverBelowTheFloorNorAboveTheLine) {
  CongestionDriver driver("{kind: dcqcn, minimum_rate: 3 Gbps}", 100 * kGbps);
  for (Time us = 0; us < 2000; ++us) driver.cnp(us * kMicrosecond);
  EXPECT_EQ(driver.rate(), 3 * kGbps);
  EXPECT_LE(driver.timers(), 2u) << "decreases do not pile up timers";
  driver.advance(kSecond);
  EXPECT_EQ(driver.rate(), 100 * kGbps);
  EXPECT_EQ(driver.timers(), 0u) << "at the line rate the timer rests";
}

TEST(Dcqcn, DefaultsThatDependOnTheProfileAreDescribedAsSuch) {
  const std::string text = describe(*Catalogue::instance().find("congestion_control", "dcqcn"));
  EXPECT_THAT(text, HasSubstr("by profile"));
  EXPECT_THAT(text, HasSubstr("vendor 1 us, sigcomm15 55 us"));
}

TEST(Dcqcn, WrongParametersAreRefusedWithTheirPlace) {
  try {
    CongestionDriver driver("{kind: dcqcn, profile: sigcom15}", kGbps);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("control.yaml:1:24"));
    EXPECT_THAT(error.what(), HasSubstr("sigcomm15"));
  }
  EXPECT_THROW(CongestionDriver("{kind: dcqcn, g: 2}", kGbps), ConfigError);
  EXPECT_THROW(CongestionDriver("{kind: dcqcn, decrease_interval: 0}", kGbps), ConfigError);
}

}  // namespace
}  // namespace netsim::dcqcn_test
