// Paths of flows: the ports from one GPU to another, with a routing policy's choice at every branch.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/policies.h"
#include "sim/topology/topology.h"

namespace netsim {

// From the source's GPU (or NIC, where they are one node) through the fabric to the destination's GPU. `flow`
// is the hash of the five-tuple; switch s hashes with hash_combine(seed, s).
std::vector<PortId> scale_out_path(const Cluster& cluster, const Gpu& source, const Gpu& destination,
                                   const RoutingPolicy& policy, std::uint64_t flow, std::uint64_t seed);
// Between two NICs only (acknowledgements).
std::vector<PortId> nic_path(const Cluster& cluster, NodeId from, NodeId to, const RoutingPolicy& policy,
                             std::uint64_t flow, std::uint64_t seed);
// Within a host: over the scale-up links (NVLink) with fewest hops, never through a NIC. Empty if there is no
// way.
std::vector<PortId> scale_up_path(const Graph& graph, NodeId from, NodeId to);

}  // namespace netsim
