// Helpers of the topology tests: a cluster from YAML text, walks along next hops, error messages.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "sim/topology/topology.h"

namespace netsim {

inline Cluster cluster_of(const std::string& yaml) { return build_cluster(parse_config(yaml, "test.yaml")); }

// The message of the ConfigError that building the cluster throws; "" if none does.
inline std::string cluster_error(const std::string& yaml) {
  try {
    cluster_of(yaml);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

inline std::set<PortId> next_hop_set(const Routes& routes, NodeId at, NodeId destination) {
  const auto hops = routes.next_hops(at, destination);
  return {hops.begin(), hops.end()};
}

// The NICs by host port.
inline std::vector<NodeId> nic_nodes(const Cluster& cluster) {
  std::vector<NodeId> nodes;
  for (const HostPort& port : cluster.nics) nodes.push_back(port.nic);
  return nodes;
}

// Returns the number of links from one NIC to another along next hops. The walk always takes the `choice`-th
// (cyclically) of the equal ones. Returns 0 if it does not arrive within 2000 links.
inline std::uint32_t walk(const Cluster& cluster, NodeId from, NodeId to, std::uint64_t choice) {
  NodeId at = from;
  for (std::uint32_t links = 1; links <= 2000; ++links) {
    const auto hops = cluster.routes->next_hops(at, to);
    if (hops.empty() || cluster.graph.port(hops[choice % hops.size()]).node != at) return 0;
    at = cluster.graph.port(hops[choice % hops.size()]).peer_node;
    if (at == to) return links;
  }
  return 0;
}

// The switch that a NIC is joined to.
inline NodeId access_switch(const Graph& graph, NodeId nic) {
  return graph.port(graph.ports_of(nic).back()).peer_node;
}

// Compares the routes with a breadth-first search over the fabric. Every switch and NIC has the same set of
// next hops for every destination. Walks end at the destination after the shortest distance, or nowhere if
// there is no path.
inline void expect_shortest_paths(const Cluster& cluster) {
  const Graph& graph = cluster.graph;
  const auto search = shortest_path_routes(graph, cluster.nics);
  for (NodeId to : nic_nodes(cluster)) {
    const auto distance = graph.fabric_distances(access_switch(graph, to));
    const auto expect_hops = [&](NodeId at, NodeId from) {
      const auto hops = next_hop_set(*cluster.routes, at, to);
      EXPECT_EQ(hops, distance[from] != kNoId ? next_hop_set(*search, at, to) : std::set<PortId>())
          << graph.node(at).name << " to " << graph.node(to).name;
    };
    for (NodeId at = 0; at < graph.node_count(); ++at) {
      if (graph.node(at).kind == NodeKind::fabric_switch) expect_hops(at, at);
    }
    for (NodeId from : nic_nodes(cluster)) {
      if (from == to) continue;
      const std::uint32_t links = distance[access_switch(graph, from)];
      expect_hops(from, access_switch(graph, from));
      for (std::uint64_t choice : {0, 1, 5})
        EXPECT_EQ(walk(cluster, from, to, choice), links != kNoId ? links + 2 : 0);
    }
  }
}

}  // namespace netsim
