// Tests that exactly the existing cycles are found, and that channels by hops remove them from any graph.
#include "sim/topology/channel_dependencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "sim/topology/hop_ordered_routes.h"
#include "tests/topology/graphs.h"

namespace netsim::channel_dependencies_test {
namespace {

DependencyCycle all_of(const Cluster& cluster, const Routes& routes) {
  return find_cycle(cluster.graph, routes, RoutingFreedom::none, {}, UINT64_MAX);
}

TEST(ChannelDependencies, ARingOfFourHasACircleAndATreeHasNone) {
  const Cluster ring = cluster_of(topology_of(ring_of(4), ", channels: 1"));
  const DependencyCycle found = all_of(ring, *ring.routes);
  EXPECT_EQ(found.hops.size(), 4U);
  EXPECT_EQ(found.followed, 4U);
  const Cluster tree = cluster_of(topology_of({5, {{0, 1}, {0, 2}, {1, 3}, {1, 4}}}));
  EXPECT_TRUE(all_of(tree, *tree.routes).hops.empty());
  // In a triangle no packet continues after one link.
  const Cluster triangle = cluster_of(topology_of(ring_of(3)));
  EXPECT_TRUE(all_of(triangle, *triangle.routes).hops.empty());
}

TEST(ChannelDependencies, PrescribedPathsCount) {
  const Cluster line = cluster_of(topology_of(ring_of(3)));
  const auto port = [&](const std::string& name) {
    for (PortId id = 0; id < line.graph.port_count(); ++id) {
      if (line.graph.port_name(id) == name) return id;
    }
    return kNoId;
  };
  const std::vector<std::vector<PortId>> round{
      {port("host0->s0"), port("s0->s1"), port("s1->s2"), port("s2->host2")},
      {port("host1->s1"), port("s1->s2"), port("s2->s0"), port("s0->host0")},
      {port("host2->s2"), port("s2->s0"), port("s0->s1"), port("s1->host1")}};
  EXPECT_EQ(find_cycle(line.graph, *line.routes, RoutingFreedom::none, round, UINT64_MAX).hops.size(), 3U);
  EXPECT_TRUE(
      find_cycle(line.graph, *line.routes, RoutingFreedom::none, {round.data(), 2}, UINT64_MAX).hops.empty());
}

TEST(ChannelDependencies, EffortEndsTheSearchAndSaysSo) {
  const Cluster tree = cluster_of("topology: {kind: fat_tree, k: 8}");
  const DependencyCycle some = find_cycle(tree.graph, *tree.routes, RoutingFreedom::none, {}, 1000);
  EXPECT_GE(some.followed, 1U);
  EXPECT_LT(some.followed, some.destinations);
  EXPECT_EQ(some.destinations, 32U);  // one for each edge switch
  EXPECT_TRUE(all_of(tree, *tree.routes).hops.empty());
}

TEST(HopOrderedRoutes, HaveNoCirclesOnAnyGraphWithAsManyChannelsAsHops) {
  EXPECT_TRUE(rc::check("random connected graphs", [] {
    const SwitchLinks graph = *random_connected(2, 13, 12);
    const Cluster cluster = cluster_of(topology_of(graph));
    const auto routes =
        hop_ordered_routes(cluster.graph, shortest_path_routes(cluster.graph, cluster.nics), graph.switches);
    const DependencyCycle found = all_of(cluster, *routes);
    RC_ASSERT(found.followed == found.destinations);
    RC_ASSERT(found.hops.empty());
  }));
}

}  // namespace
}  // namespace netsim::channel_dependencies_test
