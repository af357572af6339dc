// Finds the torus that the links between the ranks of a group form.
#pragma once

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/dimensions.h"

namespace netsim {

inline constexpr std::size_t kMostDimensionsOfTorus = 4;

// Returns the dimensions of more than one rank: those given, or those of a torus whose links all join ranks
// directly (GroupShape::links). It is one with most trees (TorusTrees).
//
// Where the links are not known they are the given dimensions, or one of all ranks. Throws InputError where
// the ranks have no such torus, or where two neighbours of the given one have no link.
Dimensions torus_of(const Dimensions& given, const char* algorithm, CollectiveKind kind,
                    const GroupShape& shape);

}  // namespace netsim
