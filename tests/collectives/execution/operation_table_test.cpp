// Does the executor's table of operations do what a map does, whatever collides and whatever is taken out?
#include "sim/collectives/execution/operation_table.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <vector>

namespace netsim {
namespace {

TEST(OperationTable, FindsNothingWhenEmpty) {
  OperationTable table;
  EXPECT_EQ(table.find(0), OperationTable::kNone);
  table.insert(0, 7);
  EXPECT_EQ(table.find(0), 7u);
  table.erase(0);
  EXPECT_EQ(table.find(0), OperationTable::kNone);
  EXPECT_EQ(table.size(), 0u);
}

TEST(OperationTable, IsAMap) {
  EXPECT_TRUE(rc::check("inserts and erasures in any order", [] {
    OperationTable table;
    std::map<std::uint64_t, std::uint32_t> map;
    const auto steps =
        *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, 40));
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      const std::uint64_t key = steps[i];
      if (map.contains(key)) {
        table.erase(key);
        map.erase(key);
      } else {
        table.insert(key, i);
        map[key] = i;
      }
      for (std::uint64_t k = 0; k < 40; ++k) {
        RC_ASSERT(table.find(k) == (map.contains(k) ? map[k] : OperationTable::kNone));
      }
      RC_ASSERT(table.size() == map.size());
    }
  }));
}

}  // namespace
}  // namespace netsim
