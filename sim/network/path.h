// Paths of flows: the ports from one GPU to another, with a routing policy's choice at every branch.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/policies.h"
#include "sim/topology/topology.h"

namespace netsim {

// Between two NICs, by the routes' next hops. `flow` is the hash of the five-tuple; switch s hashes with
// hash_combine(seed, s). `down`: by port, those that are known to be down, which `routes` avoid and a policy
// that prescribes ways may. Empty if they leave no way. ConfigError where the policy prescribes a path that
// is none.
std::vector<PortId> nic_path(const Graph& graph, const Routes& routes, const std::vector<bool>& down,
                             NodeId from, NodeId to, const RoutingPolicy& policy, std::uint64_t flow,
                             std::uint64_t seed);
// The link from a node to its neighbour.
PortId port_between(const Graph& graph, NodeId from, NodeId to);
// Within a host: over the scale-up links (NVLink) with fewest hops, never through a NIC. Empty if there is no
// way.
std::vector<PortId> scale_up_path(const Graph& graph, NodeId from, NodeId to);

}  // namespace netsim
