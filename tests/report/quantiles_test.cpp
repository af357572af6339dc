// Are quantiles exact while they can be, and within their bins' width afterwards?
#include "sim/report/quantiles.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "sim/core/random.h"

namespace netsim::quantiles_test {
namespace {

std::int64_t nearest_rank(std::vector<std::int64_t> values, std::uint64_t percent) {
  std::sort(values.begin(), values.end());
  std::size_t rank = 0;
  while (rank * 100 < values.size() * percent) ++rank;
  return values[rank - 1];
}

TEST(ReportQuantiles, OfNothingAreZero) {
  const Quantiles none;
  EXPECT_EQ(none.count(), 0u);
  EXPECT_EQ(none.mean(), 0);
  EXPECT_EQ(none.quantile(99), 0);
}

TEST(ReportQuantiles, AreNearestRank) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint32_t>& drawn) {
    RC_PRE(!drawn.empty());
    Quantiles quantiles;
    double sum = 0;
    for (const std::uint32_t value : drawn) {
      quantiles.add(value);
      sum += value;
    }
    const std::vector<std::int64_t> values(drawn.begin(), drawn.end());
    for (const std::uint64_t percent : {1, 50, 95, 99, 100}) {
      RC_ASSERT(quantiles.quantile(percent) == nearest_rank(values, percent));
    }
    RC_ASSERT(quantiles.maximum() == quantiles.quantile(100));
    RC_ASSERT(quantiles.mean() == sum / static_cast<double>(drawn.size()));
  }));
}

// Sizes over all magnitudes, more than are kept one by one.
TEST(ReportQuantiles, OfVeryManyAreWithinAThousandth) {
  RandomStream random(1, "quantiles");
  Quantiles forward, backward;
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < Quantiles::kExact + 100'000; ++i) {
    values.push_back(static_cast<std::int64_t>(random.bits() >> (1 + random.below(63))));
  }
  for (const std::int64_t value : values) forward.add(value);
  std::reverse(values.begin(), values.end());
  for (const std::int64_t value : values) backward.add(value);
  std::sort(values.begin(), values.end());
  for (std::uint64_t percent = 1; percent <= 100; ++percent) {
    const std::int64_t exact = values[(values.size() * percent + 99) / 100 - 1];
    const std::int64_t found = forward.quantile(percent);
    EXPECT_GE(found, exact) << percent;
    EXPECT_LE(found - exact, exact / 1024) << percent;
    EXPECT_EQ(found, backward.quantile(percent)) << percent;
  }
  EXPECT_EQ(forward.quantile(100), values.back());
  EXPECT_EQ(forward.mean(), backward.mean());
}

TEST(ReportQuantiles, HoldTheLargestValueThereIs) {
  Quantiles quantiles;
  for (std::size_t i = 0; i <= Quantiles::kExact; ++i) quantiles.add(INT64_MAX);
  EXPECT_EQ(quantiles.quantile(1), INT64_MAX);
  EXPECT_DOUBLE_EQ(quantiles.mean(), 0x1p63);
}

}  // namespace
}  // namespace netsim::quantiles_test
