// How many of its cases a test runs. The quick suite runs a share of the cases of long tests, and a build
// with a sanitizer runs a smaller share. The tests that ctest labels `long` set NETSIM_TEST_SIZE=full and run
// all cases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tests/support/sanitizers.h"

namespace netsim::test {

inline bool full_size() {
  const char* size = std::getenv("NETSIM_TEST_SIZE");
  return size != nullptr && std::string_view(size) == "full";
}

// Returns the argument for the size of this run: all cases, the quick suite, or the quick suite under a
// sanitizer.
template <class T>
T by_size(T full, T quick, T under_sanitizer) {
  return full_size() ? full : sanitized() ? under_sanitizer : quick;
}

// Returns each n-th of the cases, beginning with the first; n is 1 in a full run.
template <class T>
std::vector<T> share_of(const std::vector<T>& all, std::size_t quick, std::size_t under_sanitizer) {
  const std::size_t n = by_size<std::size_t>(1, quick, under_sanitizer);
  std::vector<T> share;
  for (std::size_t i = 0; i < all.size(); i += n) share.push_back(all[i]);
  return share;
}

// Returns the group sizes that a collective is tested with: those of 2 to 64 that suit it in a full run. The
// shares hold powers of two, their neighbours, primes, squares and multiples of the groups that algorithms
// have. Never empty, if any size suits.
inline std::vector<std::uint32_t> group_sizes(bool (*suits)(std::uint32_t ranks)) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t p = 2; p <= 64; ++p) {
    if (suits(p)) all.push_back(p);
  }
  std::vector<std::uint32_t> share = by_size<std::vector<std::uint32_t>>(
      all, {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 20, 24, 25, 31, 32, 33, 48, 64},
      {2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 17, 25, 32});
  std::erase_if(share, [&](std::uint32_t p) { return !suits(p); });
  return share.empty() ? all : share;
}

}  // namespace netsim::test
