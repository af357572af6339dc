// Are the streams independent, uniform and the same everywhere, and is our logarithm exact enough?
#include "sim/core/random.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "sim/core/errors.h"
#include "sim/core/fingerprint.h"

namespace netsim::random_test {
namespace {

double relative_error(double x) {
  const auto exact = std::log(static_cast<long double>(x));
  if (exact == 0) return std::fabs(portable_log(x));
  return static_cast<double>(std::fabs((static_cast<long double>(portable_log(x)) - exact) / exact));
}

TEST(PortableLog, AgreesWithTheLogarithm) {
  EXPECT_EQ(portable_log(1.0), 0.0);
  double worst = 0;
  RandomStream random(1, "log");
  for (int i = 0; i < 200'000; ++i) {
    worst = std::max(worst, relative_error(random.uniform() + 0x1p-54));
    worst = std::max(worst, relative_error(0.5 + 1.5 * random.uniform()));
    const int exponent = static_cast<int>(random.below(2090)) - 1072;
    worst = std::max(worst, relative_error(std::ldexp(1 + random.uniform(), exponent)));
  }
  for (const double x : {std::nextafter(1.0, 0.0), std::nextafter(1.0, 2.0), 5e-324, 1e-310,
                         1.7976931348623157e308, std::sqrt(0.5), std::sqrt(2.0), 2.0, 0.5, 10.0}) {
    worst = std::max(worst, relative_error(x));
  }
  EXPECT_LT(worst, 1e-14);
}

TEST(PortableLog, ChecksItsArgument) {
  EXPECT_THROW((void)portable_log(0.0), InternalError);
  EXPECT_THROW((void)portable_log(-1.0), InternalError);
  EXPECT_THROW((void)portable_log(std::numeric_limits<double>::quiet_NaN()), InternalError);
}

// Another machine, compiler or version has to draw the same.
TEST(RandomStream, DrawsAreFixedForever) {
  RandomStream a(1, "ecmp");
  EXPECT_EQ(a.bits(), 0xf71b6cae73f0bb95);
  EXPECT_EQ(a.bits(), 0x3830b0c2b35f28ef);
  RandomStream b(1, "ecmp");
  EXPECT_DOUBLE_EQ(b.exponential(2.0), 6.7198545720282308);
}

TEST(RandomStream, DependsOnSeedNameAndIndex) {
  std::set<std::uint64_t> keys;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const char* name : {"", "a", "b", "ab", "ba"}) {
      keys.insert(RandomStream(seed, name).key());
      for (std::uint64_t index = 0; index < 20; ++index) keys.insert(RandomStream(seed, name, index).key());
    }
  }
  EXPECT_EQ(keys.size(), 50U * 5U * 21U);
}

TEST(RandomStream, BelowIsUniform) {
  constexpr std::size_t kCells = 10;
  constexpr int kDraws = 1'000'000;
  std::array<int, kCells> counts{};
  RandomStream random(3, "below");
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.below(kCells));
  double chi = 0;
  for (const int count : counts) chi += std::pow(count - kDraws / 10.0, 2) / (kDraws / 10.0);
  EXPECT_LT(chi, 33.7) << "chi-square, 9 degrees of freedom, p = 1e-4";
}

TEST(RandomStream, UniformStaysInRange) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    RandomStream random(seed, "u");
    const double u = random.uniform();
    RC_ASSERT(u >= 0 && u < 1);
    const auto n = *rc::gen::nonZero<std::uint64_t>();
    RC_ASSERT(random.below(n) < n);
  }));
}

TEST(RandomStream, ExponentialHasItsMeanAndTail) {
  constexpr int kDraws = 1'000'000;
  RandomStream random(5, "exponential");
  double sum = 0;
  int above = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.exponential(3.0);
    ASSERT_GE(x, 0);
    sum += x;
    above += x > 6.0 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 3.0, 4 * 3.0 / std::sqrt(kDraws)) << "4 standard errors";
  const double tail = std::exp(-2.0);
  EXPECT_NEAR(above, kDraws * tail, 4 * std::sqrt(kDraws * tail * (1 - tail)));
}

TEST(Fingerprint, IsTheSumOfItsHashesInAnyOrder) {
  Fingerprint a, b;
  a.add(1, 2, 3);
  a.add(3, 2, 1);
  b.add(3, 2, 1);
  b.add(1, 2, 3);
  EXPECT_EQ(a.value(), b.value());
  Fingerprint c;
  c.add(1, 2, 3);
  EXPECT_NE(a.value(), c.value());
}

TEST(Fingerprint, HexHasSixteenDigits) {
  Fingerprint f;
  EXPECT_EQ(f.hex(), "0000000000000000");
  f.add(0xab);
  EXPECT_EQ(f.hex(), "00000000000000ab");
  f.add(0xf000000000000000);
  EXPECT_EQ(f.hex(), "f0000000000000ab");
}

}  // namespace
}  // namespace netsim::random_test
