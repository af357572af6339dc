// Matchings of the largest weight (Edmonds, Paths, Trees, and Flowers, Canadian Journal of Mathematics, 1965;
// Boost.Graph's maximum_weighted_matching).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace netsim {

// Weights of pairs (smaller, larger) of 0 .. count - 1, above 0.
using PairWeights = std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t>;

// Pairs that have no member in common and the largest sum of weights, rising.
std::vector<std::pair<std::uint32_t, std::uint32_t>> heaviest_matching(std::uint32_t count,
                                                                       const PairWeights& weights);

}  // namespace netsim
