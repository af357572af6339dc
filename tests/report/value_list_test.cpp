// Are the smallest values found, over several lists, and is nothing lost between pieces?
#include "sim/report/value_list.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "sim/core/random.h"
#include "sim/report/quantiles.h"

namespace netsim::value_list_test {
namespace {

std::vector<std::int64_t> draw(const char* name, std::size_t count, std::uint64_t range) {
  RandomStream random(1, name);
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<std::int64_t>(random.below(range)));
  return values;
}

TEST(ValueList, FindsTheSmallestOfSeveralLists) {
  EXPECT_TRUE(
      rc::check([](std::vector<std::int64_t> a, std::vector<std::int64_t> b, std::vector<std::int64_t> c) {
        RC_PRE(!a.empty() || !b.empty());
        const ValueList lists[] = {a, b, c};
        const ValueList* const all[] = {&lists[0], &lists[1], &lists[2]};
        std::vector<std::int64_t> sorted = a;
        sorted.insert(sorted.end(), b.begin(), b.end());
        sorted.insert(sorted.end(), c.begin(), c.end());
        std::sort(sorted.begin(), sorted.end());
        for (std::size_t rank = 1; rank <= sorted.size(); ++rank)
          RC_ASSERT(ValueList::smallest(all, rank) == sorted[rank - 1]);
      }));
}

// Looked at in the middle, too: pieces are sorted where they lie.
TEST(ValueList, GoesOnAfterItWasLookedAt) {
  const std::vector<std::int64_t> values = draw("values", 30'000, 1'000'000'000);
  ValueList list;
  for (std::size_t i = 0; i < values.size(); ++i) {
    list.add(values[i]);
    if (i % 5'000 != 0 && i + 1 != values.size()) continue;
    std::vector<std::int64_t> sorted(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i + 1));
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::int64_t> found;
    const ValueList* const all[] = {&list};
    for (const std::size_t rank : {std::size_t{0}, i / 3, i / 2, i})
      ASSERT_EQ(ValueList::smallest(all, rank + 1), sorted[rank]);
    list.for_each([&](std::int64_t value) { found.push_back(value); });
    std::sort(found.begin(), found.end());
    ASSERT_EQ(found, sorted);
  }
}

// Exact together as long as one of them would be; then the histogram's, whether or not the parts have one.
TEST(TogetherQuantiles, AreThoseOfOneDistribution) {
  for (const std::size_t count : {std::size_t{1'000}, Quantiles::kExact - 1, Quantiles::kExact + 100'000}) {
    Quantiles one;
    Quantiles parts[3];
    std::size_t i = 0;
    for (const std::int64_t value : draw("together", count, 1'000'000'000'000)) {
      one.add(value);
      parts[i++ % 7 == 0 ? 0 : 2].add(value);
    }
    const TogetherQuantiles together(parts);
    EXPECT_EQ(together.count(), count);
    EXPECT_EQ(together.mean(), one.mean());
    for (const std::uint64_t percent : {1, 50, 95, 99, 100})
      EXPECT_EQ(together.quantile(percent), one.quantile(percent)) << count;
  }
}

}  // namespace
}  // namespace netsim::value_list_test
