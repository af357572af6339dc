// LinkAlgorithm: an algorithm whose plans follow links that join the ranks directly.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/algorithm.h"

namespace netsim {

class LinkAlgorithm {
 public:
  virtual ~LinkAlgorithm() = default;
  // Returns the same algorithm for ranks that each have a link to the ranks at these distances (`jumps`). The
  // result lives as long as this. Any thread may call it.
  virtual const CollectiveAlgorithm& along(const std::vector<std::uint32_t>& jumps) const = 0;
};

}  // namespace netsim
