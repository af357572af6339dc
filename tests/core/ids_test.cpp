// Are ids of different things different types, and do they cost what a number costs?
#include "sim/core/ids.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace netsim {
namespace {

template <class A, class B>
concept Comparable = requires(A a, B b) {
  a == b;
};
template <class A, class B>
concept Ordered = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept OrderedDown = requires(A a, B b) {
  a >= b;
};

static_assert(!std::is_convertible_v<RankId, GpuId> && !std::is_constructible_v<GpuId, RankId>);
static_assert(!std::is_assignable_v<GpuId&, HostId>);
static_assert(std::is_convertible_v<std::uint32_t, GpuId> && std::is_convertible_v<GpuId, std::uint32_t>);
static_assert(Comparable<GpuId, GpuId> && !Comparable<GpuId, RankId> && !Ordered<GpuId, RankId>);
static_assert(Ordered<GpuId, GpuId> && OrderedDown<GpuId, GpuId> && !OrderedDown<GpuId, RankId>);
static_assert(sizeof(TaskId) == sizeof(std::uint32_t) && std::is_trivially_copyable_v<TaskId>);

TEST(Ids, StandForNothingUntilTheyAreSet) {
  EXPECT_TRUE(GpuId().is_none());
  EXPECT_EQ(GpuId(), GpuId::none());
  EXPECT_FALSE(GpuId(0).is_none());
}

TEST(Ids, AreIndicesAndKeys) {
  const std::vector<std::string> names{"first", "second"};
  const RankId rank = 1;
  EXPECT_EQ(names[rank], "second");
  EXPECT_EQ(std::to_string(rank), "1");
  const std::map<std::pair<RankId, TaskId>, int> tasks{{{0, 1}, 1}, {{1, 0}, 2}};
  EXPECT_EQ(tasks.at({1, 0}), 2);
  RankId next = rank;
  EXPECT_EQ(++next, 2U);
}

}  // namespace
}  // namespace netsim
