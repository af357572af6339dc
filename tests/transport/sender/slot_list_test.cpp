// Tests that lists of slots keep the order in which slots were appended, whatever is removed.
#include "sim/transport/sender/slot_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/core/random.h"

namespace netsim::slot_list_test {
namespace {

using Numbers = std::vector<std::uint32_t>;

Numbers numbers(const std::vector<SlotLink>& slots, const SlotList& list) {
  Numbers found;
  for (std::uint32_t slot = list.front(); slot != kNoSlot; slot = slots[slot].next) found.push_back(slot);
  EXPECT_EQ(list.size(), found.size());
  EXPECT_EQ(list.empty(), found.empty());
  return found;
}

TEST(SlotList, DoesWhatAVectorDoes) {
  constexpr std::uint32_t kSlots = 20;
  RandomStream random(1, "slots");
  std::vector<SlotLink> slots(kSlots);
  SlotList lists[2];
  Numbers expected[2];
  for (int step = 0; step < 5000; ++step) {
    const auto slot = static_cast<std::uint32_t>(random.below(kSlots));
    const std::uint64_t into = random.below(2);
    for (int one : {0, 1}) {
      const auto at = std::find(expected[one].begin(), expected[one].end(), slot);
      if (at == expected[one].end()) continue;
      expected[one].erase(at);
      lists[one].remove(slots, slot);
    }
    if (random.below(3) != 0) {
      expected[into].push_back(slot);
      lists[into].append(slots, slot);
    }
    if (random.below(50) == 0) {
      expected[0].insert(expected[0].begin(), expected[1].begin(), expected[1].end());
      expected[1].clear();
      lists[0].prepend(slots, lists[1]);
    }
    ASSERT_EQ(numbers(slots, lists[0]), expected[0]);
    ASSERT_EQ(numbers(slots, lists[1]), expected[1]);
  }
}

}  // namespace
}  // namespace netsim::slot_list_test
