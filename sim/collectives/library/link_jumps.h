// Finds the links between the members of a group, and their jumps. A ring with jump j goes from each member
// to the one j positions further on, always over a link.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/core/ids.h"

namespace netsim {

// Returns the numbers j such that a link leads from every member to the one j further on. Each j has no
// divisor in common with the number of members, so that it forms one ring. Each is followed by its opposite
// direction, the shorter ones first. `linked` is KnowsLinkedGpus::linked_gpus().
std::vector<std::uint32_t> link_jumps(const std::vector<std::vector<GpuId>>& linked,
                                      std::span<const GpuId> members);
// Returns the links between the members, by rank of the group's order. It is empty where `linked` is.
RankLinks rank_links(const std::vector<std::vector<GpuId>>& linked, std::span<const GpuId> members);

}  // namespace netsim
