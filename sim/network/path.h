// Paths of messages: the ports from one NIC or GPU to another, with a routing policy's choice at every
// branch.
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
// From one GPU to another whose way is a scale-up one (is_scale_up(cluster.way())): within their host, or
// over the scale-up fabric that joins them.
std::vector<PortId> scale_up_path(const Cluster& cluster, std::uint32_t from, std::uint32_t to);

}  // namespace netsim
