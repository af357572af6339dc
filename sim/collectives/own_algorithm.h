// OwnAlgorithm: an algorithm that the workload, not the configuration, names for a collective.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/core/config.h"

namespace netsim {

struct OwnAlgorithm {
  std::string name;  // name in tables, unique within a workload
  std::unique_ptr<CollectiveAlgorithm> algorithm;
  Place place = {};  // position in the workload file
};

// Makes the algorithm that a workload names for a collective of `kind`. Throws ConfigError at the node for an
// unknown algorithm, a wrong parameter, or an algorithm that does not support the kind.
OwnAlgorithm own_algorithm(CollectiveKind kind, const ConfigNode& node);
// Checks that the algorithm supports this number of ranks, as far as that does not depend on their placement.
// `root` is used by rooted kinds only. Throws InputError at the algorithm's place.
void check_ranks(const OwnAlgorithm& own, CollectiveKind kind, std::uint32_t ranks, std::uint32_t root);

}  // namespace netsim
