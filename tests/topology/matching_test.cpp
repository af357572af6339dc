// Matchings of the largest weight, against all that there are.
#include "sim/topology/matching.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <vector>

namespace netsim::matching_test {
namespace {

// The largest weight of a matching of those from `next` on that are not taken.
std::int64_t heaviest(std::uint32_t count, const PairWeights& weights, std::uint32_t next,
                      std::vector<bool>& taken) {
  while (next < count && taken[next]) ++next;
  if (next == count) return 0;
  std::int64_t best = heaviest(count, weights, next + 1, taken);
  for (std::uint32_t other = next + 1; other < count; ++other) {
    const auto weight = weights.find({next, other});
    if (taken[other] || weight == weights.end()) continue;
    taken[other] = true;
    best = std::max(best, weight->second + heaviest(count, weights, next + 1, taken));
    taken[other] = false;
  }
  return best;
}

TEST(HeaviestMatching, IsAsHeavyAsAnyCanBe) {
  rc::check("all matchings of up to 8", [] {
    const auto count = *rc::gen::inRange(2U, 9U);
    PairWeights weights;
    for (std::uint32_t a = 0; a < count; ++a) {
      for (std::uint32_t b = a + 1; b < count; ++b) {
        if (*rc::gen::inRange(0, 3) != 0) weights[{a, b}] = *rc::gen::inRange(1, 1000);
      }
    }
    std::set<std::uint32_t> seen;
    std::int64_t weight = 0;
    for (const auto& pair : heaviest_matching(count, weights)) {
      RC_ASSERT(seen.insert(pair.first).second && seen.insert(pair.second).second);
      weight += weights.at(pair);
    }
    std::vector<bool> taken(count, false);
    RC_ASSERT(weight == heaviest(count, weights, 0, taken));
  });
}

}  // namespace
}  // namespace netsim::matching_test
