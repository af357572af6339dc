// NICs whose own rate is lower than that of their links to the fabric.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/topology/topology.h"

namespace netsim {

// NicRate: the rate that the description of a host gives one of its NICs.
struct NicRate {
  NodeId node;
  BitRate rate;
  std::uint32_t group;  // index in Cluster::groups
};

// Lowers the rate of links to NICs whose own rate is lower, because both ends of a link agree on one rate.
// Adds one note for each group where the rates differ.
void limit_nics(Cluster& cluster, const std::vector<NicRate>& rates);

}  // namespace netsim
