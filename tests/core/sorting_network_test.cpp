// Tests that the sorting networks sort. A network sorts everything if it sorts all sequences of zeros and
// ones: the zero-one principle (Knuth, The Art of Computer Programming, volume 3, 5.3.4).
#include "sim/core/sorting_network.h"

#include <gtest/gtest.h>

#include <vector>

namespace netsim::sorting_network_test {
namespace {

TEST(SortingNetwork, SortsAllZerosAndOnes) {
  for (std::size_t count = 0; count <= kLargestNetwork; ++count) {
    for (std::uint32_t bits = 0; bits < 1U << count; ++bits) {
      std::vector<std::uint64_t> numbers;
      for (std::size_t i = 0; i < count; ++i) numbers.push_back(bits >> i & 1U);
      sort_numbers(numbers.data(), count);
      ASSERT_TRUE(std::is_sorted(numbers.begin(), numbers.end())) << count << " numbers, " << bits;
    }
  }
}

TEST(SortingNetwork, KeepsTheNumbers) {
  for (std::size_t count = 2; count <= 2 * kLargestNetwork; ++count) {
    std::vector<std::uint64_t> numbers, sorted;
    for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(i * 7919 % 31);
    sorted = numbers;
    std::sort(sorted.begin(), sorted.end());
    sort_numbers(numbers.data(), count);
    EXPECT_EQ(numbers, sorted) << count << " numbers";
  }
}

}  // namespace
}  // namespace netsim::sorting_network_test
