// Tests layers of virtual channels. Any connected graph has routes without cycles in them, with however few
// channels. Routes are shortest if the text says so. Tests also which packets use which layer.
#include "sim/topology/layered_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/topology/channel_dependencies.h"
#include "tests/topology/graphs.h"

namespace netsim::layered_routes_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Whether the ways have no cycle, all of them looked at.
bool free_of_cycles(const Cluster& cluster, const Routes& routes) {
  const DependencyCycle found = find_cycle(cluster.graph, routes, RoutingFreedom::none, {}, UINT64_MAX);
  return found.followed == found.destinations && found.hops.empty();
}

// Returns the number of links of a route on which a packet takes some hop that it is offered, another one
// with each `choice`. Returns 0 if it does not arrive, or leaves its channels.
std::uint32_t links(const Cluster& cluster, const Routes& routes, NodeId from, NodeId to,
                    std::uint64_t choice) {
  Waypoint packet;
  packet.came = {routes.next_hops(from, to).front(), 0};
  packet.destination = to;
  std::vector<Hop> hops;
  const std::uint32_t most = 100 + 12 * static_cast<std::uint32_t>(cluster.graph.node_count());
  for (std::uint32_t count = 1; count < most; ++count) {
    packet.at = cluster.graph.port(packet.came.port).peer_node;
    if (packet.at == to) return count;
    hops.clear();
    routes.add_hops(packet, hops);
    if (hops.empty()) return 0;
    choice = choice * 6364136223846793005U + 1442695040888963407U;
    packet.came = hops[(choice >> 33U) % hops.size()];
    if (packet.came.channel >= routes.channels(RoutingFreedom::none)) return 0;
    if (cluster.graph.port(packet.came.port).node != packet.at) return 0;
  }
  return 0;
}

struct Lengths {
  bool all_arrive = true;
  std::uint64_t longer = 0;  // ways that are longer than the shortest
};
Lengths measure(const Cluster& cluster, const Routes& routes) {
  Lengths result;
  for (const NodeId to : nic_nodes(cluster)) {
    const auto shortest = cluster.graph.fabric_distances(access_switch(cluster.graph, to));
    for (const NodeId from : nic_nodes(cluster)) {
      if (from == to) continue;
      for (const std::uint64_t choice : {0, 1, 2}) {
        const std::uint32_t found = links(cluster, routes, from, to, choice);
        result.all_arrive = result.all_arrive && found != 0;
        if (choice == 0) result.longer += found != shortest[access_switch(cluster.graph, from)] + 2;
      }
    }
  }
  return result;
}

TEST(LayeredRoutes, EveryConnectedGraphHasWaysWithoutCircles) {
  EXPECT_TRUE(rc::check("every pair, whatever hop is taken", [] {
    const SwitchLinks graph = *random_connected(2, 20, 16);
    const Cluster cluster = cluster_of(topology_of(graph));
    const auto layers = *rc::gen::inRange<std::uint32_t>(0, 5);
    const auto routes = layered_routes(cluster.graph, cluster.nics, layers, 6);
    const std::uint32_t channels = routes->channels(RoutingFreedom::none);
    RC_ASSERT((channels <= 6U && (layers == 0 || channels == layers)));
    RC_ASSERT(free_of_cycles(cluster, *routes));
    const Lengths found = measure(cluster, *routes);
    RC_ASSERT(found.all_arrive);
    if (layers == 0) RC_ASSERT(found.longer == 0);
  }));
}

TEST(LayeredRoutes, LinksThatAreDownLeaveLayers) {
  EXPECT_TRUE(rc::check("all that is still joined arrives", [] {
    const SwitchLinks graph = *random_connected(3, 16, 20);
    const Cluster cluster = cluster_of(topology_of(graph));
    const auto whole = layered_routes(cluster.graph, cluster.nics, 2, 6);
    std::vector<bool> down(cluster.graph.port_count(), false);
    for (PortId port = 0; port < cluster.graph.port_count(); port += 2) {
      const bool between =
          cluster.graph.node(cluster.graph.port(port).node).kind == NodeKind::fabric_switch &&
          cluster.graph.node(cluster.graph.port(port).peer_node).kind == NodeKind::fabric_switch;
      if (between && *rc::gen::inRange(0, 4) == 0) down[port] = down[port + 1] = true;
    }
    const auto rest = whole->without(cluster.graph, cluster.nics, down, 2);
    RC_ASSERT(free_of_cycles(cluster, *rest));
    const auto shortest = shortest_path_routes(cluster.graph, cluster.nics, down);
    for (const NodeId to : nic_nodes(cluster)) {
      for (const NodeId from : nic_nodes(cluster)) {
        if (from == to) continue;
        const NodeId first = access_switch(cluster.graph, from);
        const bool joined = !shortest->next_hops(first, to).empty();
        RC_ASSERT((links(cluster, *rest, from, to, 0) != 0) == joined);
        RC_ASSERT(rest->next_hops(first, to).empty() != joined);
      }
    }
  }));
}

// Packets in flight on other routes, in any channel, still have a route.
TEST(LayeredRoutes, TakePacketsThatCameByOtherRoutes) {
  const Cluster cluster = cluster_of(topology_of(ring_of(12)));
  const auto routes = layered_routes(cluster.graph, cluster.nics, 2, 6);
  const NodeId to = cluster.nics[5].nic;
  std::vector<Hop> hops;
  for (PortId port = 0; port < cluster.graph.port_count(); ++port) {
    const NodeId at = cluster.graph.port(port).peer_node;
    if (cluster.graph.node(at).kind != NodeKind::fabric_switch) continue;
    for (const std::uint32_t channel : {0U, 1U, 5U}) {
      hops.clear();
      routes->add_hops({.at = at, .came = {port, channel}, .destination = to}, hops);
      EXPECT_FALSE(hops.empty()) << cluster.graph.port_name(port) << " in " << channel;
    }
  }
}

std::uint32_t layers_of(const SwitchLinks& graph) {
  const Cluster cluster = cluster_of(topology_of(graph));
  const auto routes = layered_routes(cluster.graph, cluster.nics, 0, 6);
  EXPECT_TRUE(free_of_cycles(cluster, *routes));
  EXPECT_EQ(measure(cluster, *routes).longer, 0U);
  return routes->channels(RoutingFreedom::none);
}

// In a ring, mesh or torus of any size the hops of the dimensions can be ordered. A route then turns up again
// at most once.
TEST(LayeredRoutes, OfKnownShapesAreFew) {
  for (const std::uint32_t size : {5U, 8U, 17U, 30U}) EXPECT_EQ(layers_of(ring_of(size)), 2U) << size;
  EXPECT_EQ(layers_of(grid_of({6, 7}, false)), 2U);
  EXPECT_EQ(layers_of(grid_of({3, 4, 3}, false)), 2U);
  EXPECT_EQ(layers_of(grid_of({7, 8}, true)), 2U);
  EXPECT_EQ(layers_of(grid_of({4, 4, 5}, true)), 2U);
  EXPECT_EQ(layers_of(grid_of({3, 4, 2, 3}, true)), 2U);
  // Chains of long trees.
  SwitchLinks trees;
  for (std::uint32_t i = 1; i < 60; ++i) trees.links.emplace_back(i, i % 10 == 0 ? i - 10 : i - 1);
  trees.switches = 60;
  EXPECT_EQ(layers_of(trees), 1U);
}

// n layers are enough for shortest ways of 2 n - 1 links on any graph.
TEST(LayeredRoutes, OfRandomGraphsAreHalfOfTheirDiameter) {
  EXPECT_TRUE(rc::check("diameter / 2 + 1", [] {
    const Cluster cluster = cluster_of(topology_of(*random_connected(2, 30, 12)));
    std::uint32_t diameter = 0;
    for (const NodeId to : nic_nodes(cluster)) {
      const auto distance = cluster.graph.fabric_distances(access_switch(cluster.graph, to));
      for (const NodeId from : nic_nodes(cluster))
        diameter = std::max(diameter, distance[access_switch(cluster.graph, from)]);
    }
    const auto routes = layered_routes(cluster.graph, cluster.nics, 0, 100);
    RC_ASSERT(routes->channels(RoutingFreedom::none) <= std::max(2U, diameter / 2 + 1));
  }));
}

TEST(LayeredRoutes, KeepAllShortestWaysThatTheirLayersHold) {
  // Two ways round to the opposite switch of a ring, and over a leaf's two spines.
  const Cluster ring = cluster_of(topology_of(ring_of(8), ", channel_order: layers"));
  const NodeId at = access_switch(ring.graph, ring.nics[1].nic);
  EXPECT_EQ(next_hop_set(*ring.routes, at, ring.nics[5].nic).size(), 2U);
  const Cluster torus =
      cluster_of(topology_of(grid_of({8, 8}, true), ", channels: 6, channel_order: layers"));
  std::size_t hops = 0;
  for (const NodeId to : nic_nodes(torus)) {
    for (NodeId id = 0; id < torus.graph.node_count(); ++id) {
      if (torus.graph.node(id).kind == NodeKind::fabric_switch)
        hops += next_hop_set(*torus.routes, id, to).size();
    }
  }
  const auto search = shortest_path_routes(torus.graph, torus.nics);
  std::size_t all = 0;
  for (const NodeId to : nic_nodes(torus)) {
    for (NodeId id = 0; id < torus.graph.node_count(); ++id) {
      if (torus.graph.node(id).kind == NodeKind::fabric_switch) all += next_hop_set(*search, id, to).size();
    }
  }
  EXPECT_GT(static_cast<double>(hops), 0.95 * static_cast<double>(all));
}

// ---- Who gets them

TEST(OrderedRoutes, AreByHopsWhereChannelsAreEnoughElseByLayers) {
  const Cluster twelve = cluster_of(topology_of(ring_of(12)));  // ways of six links
  EXPECT_EQ(twelve.routes->channels(RoutingFreedom::none), 6U);
  EXPECT_THAT(twelve.routes->channels_in_words(), HasSubstr("6, by hops"));
  const Cluster thirty = cluster_of(topology_of(ring_of(30)));
  EXPECT_EQ(thirty.routes->channels(RoutingFreedom::none), 2U);
  EXPECT_THAT(thirty.routes->channels_in_words(),
              AllOf(HasSubstr("2, by layers"), HasSubstr("all routes are shortest ones")));
  EXPECT_TRUE(free_of_cycles(thirty, *thirty.routes));
  const Cluster three = cluster_of(topology_of(ring_of(12), ", channels: 3"));
  EXPECT_EQ(three.routes->channels(RoutingFreedom::none), 3U);
  EXPECT_THAT(three.routes->channels_in_words(), HasSubstr("by layers"));
  const Cluster line = cluster_of(topology_of(grid_of({40}, false)));
  EXPECT_EQ(line.routes->channels(RoutingFreedom::none), 1U);
  EXPECT_EQ(line.routes->channels_in_words(), "");
  const Cluster hops = cluster_of(topology_of(ring_of(30), ", channel_order: hops"));
  EXPECT_EQ(hops.routes->channels(RoutingFreedom::none), 6U);
  EXPECT_FALSE(free_of_cycles(hops, *hops.routes));
  const Cluster plain = cluster_of(topology_of(ring_of(12), ", channels: 1"));
  EXPECT_EQ(plain.routes->channels(RoutingFreedom::none), 1U);
  EXPECT_FALSE(free_of_cycles(plain, *plain.routes));
  EXPECT_EQ(measure(plain, *plain.routes).longer, 0U);
}

// A sparse random graph needs several layers; in fewer some ways are longer, in one they are up*/down*.
TEST(OrderedRoutes, FewerLayersMakeLongerWays) {
  const std::string graph =
      "topology: {kind: jellyfish, switches: 120, degree: 3, channel_order: layers, channels: ";
  const std::uint32_t needed = cluster_of(graph + "0}").routes->channels(RoutingFreedom::none);
  ASSERT_GE(needed, 3U);
  std::uint64_t longer = 0;
  for (std::uint32_t layers = needed; layers > 0; --layers) {
    const Cluster cluster = cluster_of(graph + std::to_string(layers) + "}");
    EXPECT_EQ(cluster.routes->channels(RoutingFreedom::none), layers);
    EXPECT_TRUE(free_of_cycles(cluster, *cluster.routes)) << layers;
    const Lengths found = measure(cluster, *cluster.routes);
    EXPECT_TRUE(found.all_arrive);
    EXPECT_EQ(found.longer != 0, layers < needed) << layers;
    EXPECT_GE(found.longer, longer);
    longer = found.longer;
    const std::string words = cluster.routes->channels_in_words();
    const char* const expected = layers == needed ? "all routes are shortest ones"
                                 : layers > 1     ? "% of the routes between switches are longer"
                                                  : "routes go up, then down";
    EXPECT_THAT(words, HasSubstr(expected));
  }
}

TEST(OrderedRoutes, LayersAreForSoManySwitches) {
  EXPECT_THAT(cluster_error("topology: {kind: jellyfish, switches: 5000, degree: 3, channel_order: layers}"),
              AllOf(HasSubstr("topology.channel_order"), HasSubstr("at most 4096 switches, here are 5000"),
                    HasSubstr("allowed: hops")));
  EXPECT_THAT(cluster_error("topology: {kind: jellyfish, channel_order: layer}"),
              AllOf(HasSubstr("topology.channel_order"), HasSubstr("layers")));
}

// A sparse random graph, whose paths are longer than six links.
TEST(OrderedRoutes, OfASparseJellyfishAreLayers) {
  const Cluster cluster = cluster_of("topology: {kind: jellyfish, switches: 300, degree: 3}");
  EXPECT_THAT(cluster.routes->channels_in_words(),
              AllOf(HasSubstr("by layers"), HasSubstr("all routes are shortest ones")));
  EXPECT_LE(cluster.routes->channels(RoutingFreedom::none), 5U);
  EXPECT_TRUE(free_of_cycles(cluster, *cluster.routes));
}

TEST(OrderedRoutes, OfARingInAFileAreLayers) {
  const std::string path = (std::filesystem::path(::testing::TempDir()) / "netsim_ring_of_20.txt").string();
  std::ofstream file(path);
  file << "40 20 40\n";
  for (int i = 0; i < 20; ++i) file << i << (i == 19 ? "\n" : " ");
  for (int i = 0; i < 20; ++i) file << 20 + i << " " << i << " 100Gbps 1us 0\n";
  for (int i = 0; i < 20; ++i) file << i << " " << (i + 1) % 20 << " 100Gbps 1us 0\n";
  file.close();
  const Cluster cluster = cluster_of("topology: {kind: ns3, file: " + path + "}");
  EXPECT_THAT(cluster.routes->channels_in_words(), HasSubstr("2, by layers"));
  EXPECT_TRUE(free_of_cycles(cluster, *cluster.routes));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace netsim::layered_routes_test
