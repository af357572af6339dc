// The parameter `dimensions` of algorithms that arrange the ranks of a group in a grid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/collective_kind.h"
#include "sim/core/config.h"
#include "sim/core/parameters.h"

namespace netsim {

// Dimensions: the sizes of the grid. The first dimension varies fastest in the numbers of ranks.
using Dimensions = std::vector<std::uint32_t>;

struct DimensionsParameters {
  ConfigNode dimensions;
};
// Returns the parameter. `otherwise` documents the default sizes.
Parameters<DimensionsParameters> dimensions_parameters(const std::string& otherwise);

// Returns the sizes; empty where the user gave none. Throws ConfigError for anything but a list of `minimum`
// to `maximum` sizes from 1 to 2^20.
Dimensions read_dimensions(const DimensionsParameters& parameters, std::size_t minimum, std::size_t maximum);

// Returns the sizes of the grid of `ranks` ranks: those of the user, or else `otherwise`. Throws InputError
// where their product is not the number of ranks.
Dimensions dimensions_of(const Dimensions& given, const Dimensions& otherwise, const char* algorithm,
                         CollectiveKind kind, std::uint32_t ranks);

// Returns the prime factors of a number, smallest first.
Dimensions prime_factors(std::uint32_t number);
// Returns the two factors of a number that are nearest to each other, the larger one first.
Dimensions nearest_factors(std::uint32_t number);

}  // namespace netsim
