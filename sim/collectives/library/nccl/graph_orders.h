// Orders of ranks from an NCCL graph file, and a layout as such a file.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/library/communicator_layout.h"
#include "sim/collectives/library/nccl/nccl_graph.h"
#include "sim/core/ids.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// Replaces the rings and chains of a group's layout by those of a graph file. It keeps those that the file
// does not have for exactly the group's GPUs in each domain. Throws InputError where the graph leaves a host
// by a NIC that is not near.
void take_orders(const NcclGraph& graph, const std::vector<GpuId>& members, const Endpoint& endpoint,
                 CommunicatorLayout& layout);

// Returns the rings and trees of the group's first domain as an NCCL graph. `inside` is the number of
// channels of a group in one host. Speeds are left 0.
NcclGraph graph_of(const std::vector<GpuId>& members, const Endpoint& endpoint,
                   const CommunicatorLayout& layout, std::uint32_t inside);

}  // namespace netsim
