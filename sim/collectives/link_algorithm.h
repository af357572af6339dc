// LinkAlgorithm: an algorithm whose plans follow links that join the ranks directly.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/algorithm.h"

namespace netsim {

class LinkAlgorithm {
 public:
  virtual ~LinkAlgorithm() = default;
  // Returns the same algorithm for ranks of which each has a link to the ones so many further on. It lives as
  // long as this; any thread may ask.
  virtual const CollectiveAlgorithm& along(const std::vector<std::uint32_t>& jumps) const = 0;
};

}  // namespace netsim
