// Ways through fabrics with virtual channels, hop by hop, for the topology tests.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "sim/topology/channel_dependencies.h"
#include "tests/topology/build.h"

namespace netsim {

// From one NIC to another, always the first hop that there is; over an intermediate if one is given. The hop
// from the NIC to its switch is not counted among them.
inline std::vector<Hop> way_of(const Cluster& cluster, std::uint32_t from, std::uint32_t to,
                               std::uint32_t choice, std::uint32_t via = kNoId) {
  const Routes& routes = *cluster.routes;
  std::vector<Hop> way, hops;
  const PortId first = routes.next_hops(cluster.nics[from].nic, cluster.nics[to].nic).front();
  Waypoint packet;
  packet.came = {first, 0};
  packet.destination = cluster.nics[to].nic;
  packet.choice = choice;
  packet.via = via;
  for (packet.at = cluster.graph.port(first).peer_node; packet.at != packet.destination;) {
    packet.reached_intermediate = packet.via != kNoId && routes.passes(packet.at, packet.via);
    if (packet.reached_intermediate) packet.via = kNoId;
    hops.clear();
    routes.add_hops(packet, hops);
    if (hops.empty() || way.size() > 2000 || cluster.graph.port(hops[0].port).node != packet.at) return {};
    way.push_back(hops[0]);
    packet.came = hops[0];
    packet.at = cluster.graph.port(hops[0].port).peer_node;
  }
  return way;
}

// Links of that way, the first one counted; 0: it does not arrive.
inline std::uint32_t links_of_way(const Cluster& cluster, std::uint32_t from, std::uint32_t to,
                                  std::uint32_t choice, std::uint32_t via = kNoId) {
  const std::size_t hops = way_of(cluster, from, to, choice, via).size();
  return hops == 0 ? 0 : static_cast<std::uint32_t>(hops) + 1;
}

}  // namespace netsim
