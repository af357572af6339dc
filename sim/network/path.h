// Paths of messages: the ports from one NIC or GPU to another. A routing policy chooses at every branch.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/packet_tag.h"
#include "sim/network/policies.h"
#include "sim/network/port.h"
#include "sim/topology/topology.h"

namespace netsim {

// A flow between two NICs. `id` is the hash of the five-tuple.
//
// `hint` is a path hint in mixed radix. Its lowest digit is the index among the equal hops at the first
// switch that has several, the next digit that at the next such switch, and so on. Before them come, where
// the policy sends flows over intermediates, the intermediate, and the choice of Routes::choices().
struct PathFlow {
  NodeId from = kNoId, to = kNoId;
  std::uint64_t id = 0;
  std::uint32_t hint = kNoPathHint;
};

// Returns the steps (port.h) of the flow's path over the routes' next hops. They are ports; with `channels` >
// 1 all steps but the first, the NIC's port, are hops. Empty if there is no way.
//
// Switch s hashes with hash_combine(seed, Graph::node_number(s)). `down` tells, by port, which are known to
// be down. `routes` avoid those, but prescribed ways may contain them.
std::vector<std::uint32_t> nic_path(const Graph& graph, const Routes& routes, const std::vector<bool>& down,
                                    const PathFlow& flow, const RoutingPolicy& policy, std::uint32_t channels,
                                    std::uint64_t seed);
// Returns the number of hints that are needed to reach all paths that hints can give the flow, whose own hint
// is not used. It is the largest product of the digits' bases on any of them; 1 where hints have no effect.
std::uint32_t count_path_hints(const Graph& graph, const Routes& routes, const std::vector<bool>& down,
                               const PathFlow& flow, const RoutingPolicy& policy, std::uint32_t channels,
                               std::uint64_t seed);
// Returns the ports from one NIC to another by way of the intermediate `via` (Routes::passes()), which the
// packet's first switch chooses. Among equal hops it takes the first. The path is direct if one of its ends
// already passes the intermediate; it is empty if there is no way.
std::vector<PortId> nic_path_over(const Graph& graph, const Routes& routes, NodeId from, NodeId to,
                                  std::uint32_t via);
// Returns all paths that the policy prescribes.
std::vector<std::vector<PortId>> prescribed_paths(const Graph& graph, const RoutingPolicy& policy);
// Returns the ports of steps that each lead to a port.
std::vector<PortId> ports_of_steps(std::vector<std::uint32_t> steps);
// Returns the ports from one GPU to another on a scale-up way (is_scale_up(cluster.way())). It stays within
// their host or uses the scale-up fabric that joins them.
std::vector<PortId> scale_up_path(const Cluster& cluster, std::uint32_t from, std::uint32_t to);

}  // namespace netsim
