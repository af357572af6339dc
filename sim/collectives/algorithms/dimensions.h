// The parameter `dimensions` of algorithms that see the ranks of a group as a grid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/collective_kind.h"
#include "sim/core/config.h"
#include "sim/core/parameters.h"

namespace netsim {

// Sizes; the first dimension varies fastest in the numbers of ranks.
using Dimensions = std::vector<std::uint32_t>;

struct DimensionsParameters {
  ConfigNode dimensions;
};
// With what the sizes are if they are not given.
Parameters<DimensionsParameters> dimensions_parameters(const std::string& otherwise);

// Empty where the user gave none. ConfigError for anything else than a list of `minimum` to `maximum` sizes
// from 1 to 2^20.
Dimensions read_dimensions(const DimensionsParameters& parameters, std::size_t minimum, std::size_t maximum);

// The sizes of the grid of `ranks` ranks: those that the user gave, or else `otherwise`. InputError where
// their product is not the number of ranks.
Dimensions dimensions_of(const Dimensions& given, const Dimensions& otherwise, const char* algorithm,
                         CollectiveKind kind, std::uint32_t ranks);

// The prime factors of a number, smallest first.
Dimensions prime_factors(std::uint32_t number);
// The two factors of a number that are nearest to each other, the larger one first.
Dimensions nearest_factors(std::uint32_t number);

}  // namespace netsim
