// Sorts a few numbers without branches, for the buckets of an event loop.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace netsim {

// SortingNetwork: sorts `Size` numbers by a fixed network of comparisons (Batcher, Sorting networks and their
// applications, AFIPS 1968). It has no branches, which with random times would be mispredicted for every
// other event. If `Size` is no power of two, it is the next one's network without the comparisons with
// missing numbers, which are the largest.
template <std::size_t Size>
struct SortingNetwork {
  struct Pair {
    std::size_t low, high;
  };
  template <class Use>
  static constexpr void each_pair(Use use) {
    constexpr std::size_t kWhole = std::bit_ceil(Size);
    for (std::size_t p = 1; p < kWhole; p += p) {
      for (std::size_t k = p; k >= 1; k /= 2) {
        for (std::size_t j = k % p; j + k < kWhole; j += 2 * k) {
          for (std::size_t i = j; i < j + k && i + k < Size; ++i) {
            if (i / (2 * p) == (i + k) / (2 * p)) use(Pair{i, i + k});
          }
        }
      }
    }
  }
  static constexpr std::size_t count() {
    std::size_t pairs = 0;
    each_pair([&](Pair) { ++pairs; });
    return pairs;
  }
  static constexpr auto kPairs = [] {
    std::array<Pair, count()> pairs{};
    std::size_t i = 0;
    each_pair([&](Pair pair) { pairs[i++] = pair; });
    return pairs;
  }();

  template <std::size_t... I>
  [[gnu::always_inline]] static void sort(std::uint64_t* x, std::index_sequence<I...>) {
    std::uint64_t y[Size];
    std::copy(x, x + Size, y);
    const auto exchange = [&](std::size_t low, std::size_t high) __attribute__((always_inline)) {
      const std::uint64_t a = y[low], b = y[high];
      y[low] = a < b ? a : b;
      y[high] = a < b ? b : a;
    };
    (exchange(kPairs[I].low, kPairs[I].high), ...);
    std::copy(y, y + Size, x);
  }
  static void sort(std::uint64_t* x) { sort(x, std::make_index_sequence<count()>()); }
};

inline constexpr std::size_t kLargestNetwork = 16;
// Holds the networks for 2, 3, ... kLargestNetwork numbers.
constexpr auto kSortingNetworks = []<std::size_t... N>(std::index_sequence<N...>) {
  return std::array<void (*)(std::uint64_t*), sizeof...(N)>{&SortingNetwork<N + 2>::sort...};
}
(std::make_index_sequence<kLargestNetwork - 1>());

// Sorts `count` numbers: a few by a network, more by std::sort.
[[gnu::always_inline]] inline void sort_numbers(std::uint64_t* x, std::size_t count) {
  if (count < 2) return;
  if (count > kLargestNetwork) {
    std::sort(x, x + count);
  } else {
    kSortingNetworks[count - 2](x);
  }
}

}  // namespace netsim
