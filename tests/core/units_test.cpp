// Are transmission times exact, from the smallest to the largest sizes and rates, on both sides of where
// products leave 64 bits?
#include "sim/core/units.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace netsim::units_test {
namespace {

constexpr Bytes kLargest = INT64_MAX / (8 * kSecond);  // whose bits in picoseconds fit into 64 bits

Time exact(Bytes bytes, BitRate rate) {
  const Int128 bits = static_cast<Int128>(bytes) * 8 * kSecond;
  return static_cast<Time>(bits / rate + (bits % rate == 0 ? 0 : 1));
}

TEST(TransmissionTime, IsRoundedUp) {
  EXPECT_EQ(transmission_time(0, kGbps), 0);
  EXPECT_EQ(transmission_time(1, 8 * kSecond), 1);
  EXPECT_EQ(transmission_time(1, 8 * kSecond + 1), 1);
  EXPECT_EQ(transmission_time(1, 8 * kSecond - 1), 2);
  EXPECT_EQ(transmission_time(4096, 100 * kGbps), 327'680);
}

TEST(TransmissionTime, IsExactWhereProductsLeave64Bits) {
  for (const BitRate rate : {kMbps, 7 * kGbps, 8'000 * kGbps, 100'000 * kGbps, BitRate{INT64_MAX}}) {
    for (Bytes bytes = kLargest - 100; bytes <= kLargest + 100; ++bytes)
      ASSERT_EQ(transmission_time(bytes, rate), exact(bytes, rate)) << bytes << " at " << rate;
  }
}

TEST(TransmissionTime, IsExact) {
  EXPECT_TRUE(rc::check("the quotient, rounded up", [] {
    const auto bytes = *rc::gen::inRange<Bytes>(0, 100 * kGigabyte);
    const auto rate = *rc::gen::inRange<BitRate>(kMbps, 100'000 * kGbps);
    RC_ASSERT(transmission_time(bytes, rate) == exact(bytes, rate));
  }));
}

}  // namespace
}  // namespace netsim::units_test
