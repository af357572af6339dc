// Paths of messages: the ports from one NIC or GPU to another, with a routing policy's choice at every
// branch.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/policies.h"
#include "sim/network/port.h"
#include "sim/topology/topology.h"

namespace netsim {

// Between two NICs, by the routes' next hops. `flow` is the hash of the five-tuple; switch s hashes with
// hash_combine(seed, Graph::node_number(s)). `down`: by port, those that are known to be down, which `routes`
// avoid and a policy that prescribes ways may. Empty if they leave no way. Steps (port.h): ports, or hops
// where the fabric has `channels` > 1 of them, but for the first, which is the NIC's port.
std::vector<std::uint32_t> nic_path(const Graph& graph, const Routes& routes, const std::vector<bool>& down,
                                    NodeId from, NodeId to, const RoutingPolicy& policy,
                                    std::uint32_t channels, std::uint64_t flow, std::uint64_t seed);
// The ports from one NIC to another of a packet that is led over intermediate `via` (Routes::passes()),
// which its first switch chooses. It takes the first of equal hops. It goes straight where one of its ends is
// past the intermediate. Empty if there is no way.
std::vector<PortId> nic_path_over(const Graph& graph, const Routes& routes, NodeId from, NodeId to,
                                  std::uint32_t via);
// All paths that the policy prescribes.
std::vector<std::vector<PortId>> prescribed_paths(const Graph& graph, const RoutingPolicy& policy);
// The ports of such steps.
std::vector<PortId> ports_of_steps(std::vector<std::uint32_t> steps);
// From one GPU to another whose way is a scale-up one (is_scale_up(cluster.way())): within their host, or
// over the scale-up fabric that joins them.
std::vector<PortId> scale_up_path(const Cluster& cluster, std::uint32_t from, std::uint32_t to);

}  // namespace netsim
