// Does the executor's table of operations do what a map does, whatever collides and whatever is taken out?
#include "sim/collectives/execution/operation_table.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <utility>
#include <vector>

namespace netsim::operation_table_test {
namespace {

TEST(OperationTable, FindsNothingWhenEmpty) {
  OperationTable table;
  EXPECT_EQ(table.find(0, 0), kNoIndex);
  table.insert(0, 0, 7);
  EXPECT_EQ(table.find(0, 0), 7u);
  table.erase(0, 0);
  EXPECT_EQ(table.find(0, 0), kNoIndex);
  EXPECT_EQ(table.size(), 0u);
}

TEST(OperationTable, IsAMap) {
  EXPECT_TRUE(rc::check("inserts and erasures in any order", [] {
    OperationTable table;
    using Key = std::pair<std::uint32_t, std::uint64_t>;  // job, communication
    std::map<Key, std::uint32_t> map;
    const auto steps =
        *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, 40));
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      const Key key{steps[i] % 3, steps[i] / 3};
      if (map.contains(key)) {
        table.erase(key.first, key.second);
        map.erase(key);
      } else {
        table.insert(key.first, key.second, i);
        map[key] = i;
      }
      for (std::uint32_t k = 0; k < 40; ++k) {
        const Key asked{k % 3, k / 3};
        RC_ASSERT(table.find(asked.first, asked.second) == (map.contains(asked) ? map[asked] : kNoIndex));
      }
      RC_ASSERT(table.size() == map.size());
    }
  }));
}

}  // namespace
}  // namespace netsim::operation_table_test
