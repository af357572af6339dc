// OwnAlgorithm: what runs a collective for which the workload, and not the configuration, names the
// algorithm.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/core/config.h"

namespace netsim {

struct OwnAlgorithm {
  std::string name;  // for tables; of several in one workload each has another one
  std::unique_ptr<CollectiveAlgorithm> algorithm;
  Place place = {};  // where the workload names it
};

// What a workload names for a collective of `kind`. ConfigError at the node for an unknown algorithm, a wrong
// parameter of one, or one that does not do that kind.
OwnAlgorithm own_algorithm(CollectiveKind kind, const ConfigNode& node);
// Whether it does so for so many ranks, as far as that does not depend on where they are; `root`: of a kind
// that has one. InputError at its place.
void check_ranks(const OwnAlgorithm& own, CollectiveKind kind, std::uint32_t ranks, std::uint32_t root);

}  // namespace netsim
