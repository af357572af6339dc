// HyperX: full meshes, flattened butterflies, hypercubes: shape, ways, channels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "tests/topology/build.h"
#include "tests/topology/ways.h"

namespace netsim::hyperx_test {
namespace {

using ::testing::HasSubstr;

std::string hyperx(const std::string& sizes, const std::string& more = "") {
  return "topology: {kind: hyperx, sizes: " + sizes + (more.empty() ? "" : ", " + more) + "}\n";
}

TEST(Hyperx, HasTheShapeOfItsSizes) {
  EXPECT_TRUE(rc::check("switches, links, degree, diameter, ways", [] {
    const auto dimensions = *rc::gen::inRange(1, 4);
    const auto links = *rc::gen::inRange<std::uint32_t>(1, 4);
    const auto hosts = *rc::gen::inRange<std::uint32_t>(1, 4);
    std::uint32_t switches = 1, degree = 0, diameter = 0;
    std::string sizes;
    for (int d = 0; d < dimensions; ++d) {
      const auto size = *rc::gen::inRange<std::uint32_t>(1, 6);
      switches *= size;
      degree += (size - 1) * links;
      diameter += size > 1 ? 1 : 0;
      sizes += (d == 0 ? "[" : ", ") + std::to_string(size);
    }
    const Cluster cluster = cluster_of(hyperx(
        sizes + "]", "links: " + std::to_string(links) + ", hosts_per_switch: " + std::to_string(hosts)));
    const Graph& graph = cluster.graph;
    RC_ASSERT(cluster.nics.size() == std::size_t{switches} * hosts);
    RC_ASSERT(graph.port_count() == std::size_t{switches} * (2 * hosts + degree));
    std::uint32_t farthest = 0;
    const auto distance = graph.distances(cluster.nics[0].nic);
    for (NodeId id = 0; id < graph.node_count(); ++id) {
      if (graph.node(id).kind == NodeKind::fabric_switch)
        RC_ASSERT(graph.ports_of(id).size() == degree + hosts);
      if (graph.node(id).kind != NodeKind::fabric_switch) farthest = std::max(farthest, distance[id]);
    }
    RC_ASSERT(switches == 1 || farthest == diameter + 2);
    const auto count = static_cast<std::uint32_t>(cluster.nics.size());
    const auto from = *rc::gen::inRange<std::uint32_t>(0, count),
               to = *rc::gen::inRange<std::uint32_t>(0, count);
    if (from == to) return;
    const auto apart = graph.distances(cluster.nics[from].nic)[cluster.nics[to].nic];
    RC_ASSERT(links_of_way(cluster, from, to, 0) == apart);
    RC_ASSERT(walk(cluster, cluster.nics[from].nic, cluster.nics[to].nic,
                   *rc::gen::arbitrary<std::uint64_t>()) == apart);
    const auto via = *rc::gen::inRange<std::uint32_t>(0, switches);
    RC_ASSERT(links_of_way(cluster, from, to, 0, via) <= 2 * diameter + 2);
  }));
}

TEST(Hyperx, ChannelsDoNotRunInCircles) {
  for (const char* sizes : {"[5]", "[3, 3], links: 2", "[2, 2, 2, 2]", "[4, 2, 3]"}) {
    const Cluster cluster = cluster_of(hyperx(sizes));
    for (const RoutingFreedom freedom :
         {RoutingFreedom::none, RoutingFreedom::detours, RoutingFreedom::adaptive}) {
      const DependencyCycle cycle = find_cycle(cluster.graph, *cluster.routes, freedom, {}, UINT64_MAX);
      EXPECT_EQ(cycle.followed, cycle.destinations);
      EXPECT_EQ(describe(cycle, cluster.graph, true), "") << sizes << static_cast<int>(freedom);
    }
  }
}

// With an intermediate anywhere and one channel a full mesh already has cycles.
TEST(Hyperx, DetoursInOneChannelRunInCircles) {
  const Cluster cluster = cluster_of(hyperx("[4]", "channels: 1"));
  EXPECT_FALSE(
      find_cycle(cluster.graph, *cluster.routes, RoutingFreedom::detours, {}, UINT64_MAX).hops.empty());
  EXPECT_TRUE(find_cycle(cluster.graph, *cluster.routes, RoutingFreedom::none, {}, UINT64_MAX).hops.empty());
}

TEST(Hyperx, RefusesWhatHasNoShape) {
  EXPECT_THAT(cluster_error("topology: {kind: hyperx}"), HasSubstr("'sizes' is missing"));
  EXPECT_THAT(cluster_error(hyperx("8")), HasSubstr("topology.sizes: expected a list"));
  EXPECT_THAT(cluster_error(hyperx("[0]")), HasSubstr("topology.sizes"));
  EXPECT_THAT(cluster_error(hyperx("[256, 256, 256]")), HasSubstr("1048576"));
  EXPECT_THAT(cluster_error(hyperx("[4]", "links: 0")), HasSubstr("topology.links"));
}

}  // namespace
}  // namespace netsim::hyperx_test
