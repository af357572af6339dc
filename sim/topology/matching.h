// Matchings of maximum weight (Edmonds, Paths, Trees, and Flowers, Canadian Journal of Mathematics, 1965), by
// Boost.Graph's maximum_weighted_matching.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace netsim {

// Weights, above 0, of pairs (smaller, larger) of the numbers 0 to count - 1.
using PairWeights = std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t>;

// Returns the pairs, in ascending order, that have no member in common and the largest sum of weights.
std::vector<std::pair<std::uint32_t, std::uint32_t>> heaviest_matching(std::uint32_t count,
                                                                       const PairWeights& weights);

}  // namespace netsim
