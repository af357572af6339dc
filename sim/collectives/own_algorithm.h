// OwnAlgorithm: what runs a collective for which the workload, and not the configuration, names the
// algorithm.
#pragma once

#include <memory>
#include <string>

#include "sim/collectives/algorithm.h"

namespace netsim {

struct OwnAlgorithm {
  std::string name;  // for tables; of several in one workload each has another one
  std::unique_ptr<CollectiveAlgorithm> algorithm;
};

}  // namespace netsim
