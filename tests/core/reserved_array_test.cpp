#include "sim/core/reserved_array.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/sanitizers.h"

namespace netsim::reserved_array_test {
namespace {

TEST(ReservedArray, StaysWhereItIs) {
  ReservedArray<std::uint64_t> array(std::size_t{1} << 32);
  EXPECT_EQ(array.size(), 0u);
  EXPECT_EQ(array.grow(1), 0u);
  std::uint64_t* const first = &array[0];
  *first = 17;
  std::size_t size = 1;
  for (std::size_t count = 1; count < 2'000'000; count *= 3) {
    EXPECT_EQ(array.grow(count), size);
    EXPECT_EQ(array[size], 0u) << "new elements are made";
    size += count;
    array[size - 1] = size;
  }
  EXPECT_EQ(array.size(), size);
  EXPECT_EQ(&array[0], first);
  EXPECT_EQ(array.data(), first);
  EXPECT_EQ(array[0], 17u);
  EXPECT_EQ(array[size - 1], size);
}

// An element that could not be made is not destroyed either.
TEST(ReservedArray, CanBeDestroyedAfterItWasFull) {
  static int living = 0;
  struct Element {
    Element() { ++living; }
    ~Element() { --living; }
  };
  {
    ReservedArray<Element> array(4);
    array.grow(3);
    EXPECT_THROW(array.grow(2), IoError);
    EXPECT_EQ(living, 3);
  }
  EXPECT_EQ(living, 0);
}

// Entries that one thread adds are adjacent. None is lost while other threads make the array larger.
TEST(ReservedArray, GrowsFromSeveralThreads) {
  constexpr std::size_t kThreads = 4, kTimes = 20'000;
  struct Element {
    std::uint64_t thread = 99, number = 0, more[6] = {};
  };
  ReservedArray<Element> array(kThreads * kTimes * 3);
  std::vector<std::vector<std::size_t>> firsts(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < kTimes; ++i) {
        const std::size_t count = 1 + (i + t) % 3, first = array.grow(count);
        for (std::size_t k = 0; k < count; ++k) {
          Element& e = array[first + k];
          if (e.thread == 99) e.thread = t;
          e.number = i * 3 + k;
        }
        firsts[t].push_back(first);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t size = 0;
  for (std::size_t t = 0; t < kThreads; ++t) {
    for (std::size_t i = 0; i < kTimes; ++i) {
      const std::size_t count = 1 + (i + t) % 3;
      size += count;
      for (std::size_t k = 0; k < count; ++k) {
        ASSERT_EQ(array[firsts[t][i] + k].thread, t);
        ASSERT_EQ(array[firsts[t][i] + k].number, i * 3 + k);
      }
    }
  }
  EXPECT_EQ(array.size(), size);
}

// An array that follows the indices of another. Its elements are made by the users of those indices.
TEST(ReservedArray, FollowsAnother) {
  ReservedArray<std::uint32_t> numbers(100'000);
  ReservedArray<std::uint32_t> followers(100'000);
  const auto work = [&] {
    for (int i = 0; i < 10'000; ++i) {
      const std::size_t first = numbers.grow(3);
      followers.make(first, 3);
      for (std::size_t k = first; k < first + 3; ++k) followers[k] = static_cast<std::uint32_t>(k);
    }
  };
  std::thread other(work);
  work();
  other.join();
  ASSERT_EQ(followers.size(), 60'000u);
  for (std::uint32_t k = 0; k < 60'000; ++k) ASSERT_EQ(followers[k], k);
}

TEST(ReservedArray, DestroysItsElements) {
  const auto counted = std::make_shared<int>(0);
  {
    ReservedArray<std::shared_ptr<int>> array(1000);
    array.grow(700);
    for (std::size_t i = 0; i < 700; i += 2) array[i] = counted;
    EXPECT_EQ(counted.use_count(), 351);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(ReservedArray, IsNeverLargerThanItWasReservedFor) {
  ReservedArray<std::uint64_t> array(300'000);
  array.grow(299'999);
  array.grow(1);
  array[299'999] = 1;
  EXPECT_THROW(array.grow(1), IoError);
  EXPECT_THROW(array.make(300'000, 1), IoError);
}

// Under `ulimit -v` it takes a part of what there is, whatever it was to have.
TEST(ReservedArray, TakesNoMoreAddressSpaceThanThereIs) {
  if (test::sanitized()) GTEST_SKIP() << "a sanitizer's own address space is larger";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit little = before;
  little.rlim_cur = std::min<rlim_t>(before.rlim_max, rlim_t{8} << 30);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  {
    ReservedArray<std::uint64_t> array(std::size_t{1} << 40);
    EXPECT_EQ(array.grow(1000), 0u);
    EXPECT_THROW(array.grow(std::size_t{1} << 30), IoError);
  }
  EXPECT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

TEST(ReservedArray, MayReserveItsSpaceWhenItIsUsed) {
  ReservedArray<int> later(1000, Reserve::when_used), now(1000);
  EXPECT_EQ(later.data(), nullptr);
  EXPECT_NE(now.data(), nullptr);
  const std::size_t first = later.grow(3);
  later[first + 2] = 7;
  const int* place = later.data();
  later.grow(900);
  EXPECT_EQ(later.data(), place);
  EXPECT_EQ(later[2], 7);
}

}  // namespace
}  // namespace netsim::reserved_array_test
