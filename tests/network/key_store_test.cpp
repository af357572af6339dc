// Tests the key tables of a switch that several trees share: whose sum leaves for whom, and what is counted.
#include "sim/network/aggregation/key_store.h"

#include <gtest/gtest.h>

#include "sim/network/aggregation/key_table.h"

namespace netsim::key_store_test {
namespace {

using Arrival = SwitchSums::Arrival;

constexpr std::uint32_t kKeys = 11;  // of two members with the keys 1 and 10

// Two trees, of jobs 3 and 5, at a switch whose front table has one place. There is no back table.
struct Trees {
  KeyStore store{1, 0};
  KeyTable first{{8, 2, kKeys}, store, store.add_tree(3)};
  KeyTable second{{8, 2, kKeys}, store, store.add_tree(5)};
  Addend left;

  Arrival add(KeyTable& table, std::uint32_t group, std::uint32_t key, std::uint32_t psn) {
    left = {psn, aggregation_value(key, psn), 100};
    store.arriving = {left, 0, group, 1000 + group};
    return table.add(0, left);
  }
};

TEST(KeyStore, ASumLeavesForThatOfAnotherTree) {
  Trees trees;
  EXPECT_EQ(trees.add(trees.first, 7, 1, 2), Arrival::waits);
  EXPECT_EQ(trees.add(trees.second, 9, 1, 2), Arrival::unfinished) << "the place is taken by the first tree";
  EXPECT_EQ(trees.store.leaving.group, 7U);
  EXPECT_EQ(trees.store.leaving.path, 1007U);
  EXPECT_EQ(trees.left.value, aggregation_value(1, 2));
  EXPECT_EQ(trees.add(trees.second, 9, 10, 2), Arrival::completes);
  EXPECT_EQ(trees.store.leaving.group, 9U);
  EXPECT_EQ(trees.add(trees.first, 7, 10, 2), Arrival::unfinished) << "its other packet left before";
  EXPECT_EQ(trees.store.leaving.group, 7U);
}

TEST(KeyStore, CountsByTree) {
  Trees trees;
  trees.add(trees.first, 7, 1, 2);
  trees.add(trees.second, 9, 1, 2);
  trees.add(trees.second, 9, 10, 2);
  ASSERT_EQ(trees.store.uses().size(), 2U);
  EXPECT_EQ(trees.store.uses()[0].job, 3U);
  EXPECT_EQ(trees.store.uses()[0].packets, 1U);
  EXPECT_EQ(trees.store.uses()[0].unfinished, 1U);
  EXPECT_EQ(trees.store.uses()[1].job, 5U);
  EXPECT_EQ(trees.store.uses()[1].packets, 2U);
  EXPECT_EQ(trees.store.uses()[1].unfinished, 0U);
  EXPECT_EQ(trees.store.most_used(), 1U);
}

}  // namespace
}  // namespace netsim::key_store_test
