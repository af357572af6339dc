// Tori, meshes, rings and twisted tori: their shape, their ways, their channels, and how evenly ways load
// links.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/topology/build.h"
#include "tests/topology/ways.h"

namespace netsim::torus_test {
namespace {

using ::testing::HasSubstr;

std::string torus(const std::string& sizes, const std::string& more = "") {
  return "topology: {kind: torus, sizes: " + sizes + (more.empty() ? "" : ", " + more) + "}\n";
}

struct Size {
  std::string text;
  std::uint32_t routers = 1, links = 0, diameter = 0;
};

// Any sizes and wraps, with the closed forms: a ring of k has k links and diameter k / 2, a line k - 1 of
// both.
Size any_size(std::size_t most_routers) {
  Size size;
  std::vector<std::uint32_t> sizes, own;
  std::string wraps;
  const auto dimensions = *rc::gen::inRange(1, 5);
  for (int d = 0; d < dimensions; ++d) {
    const std::size_t room = most_routers / size.routers;
    sizes.push_back(
        *rc::gen::inRange<std::uint32_t>(1, static_cast<std::uint32_t>(std::min<std::size_t>(room, 7)) + 1));
    const bool wrap = *rc::gen::arbitrary<bool>();
    const bool ring = wrap && sizes.back() > 2;
    own.push_back(ring ? sizes.back() : sizes.back() - 1);
    size.diameter += ring ? sizes.back() / 2 : sizes.back() - 1;
    size.routers *= sizes.back();
    size.text += (d == 0 ? "[" : ", ") + std::to_string(sizes.back());
    wraps += (d == 0 ? "[" : ", ") + std::string(wrap ? "true" : "false");
  }
  for (std::size_t d = 0; d < sizes.size(); ++d) size.links += size.routers / sizes[d] * own[d];
  size.text += "], wrap: " + wraps + "]";
  return size;
}

TEST(Torus, HasTheShapeOfItsSizes) {
  EXPECT_TRUE(rc::check("nodes, links, degree, diameter", [] {
    const Size size = any_size(200);
    const Cluster cluster = cluster_of(torus(size.text));
    RC_ASSERT(cluster.nics.size() == size.routers);
    RC_ASSERT(cluster.graph.node_count() == 2 * std::size_t{size.routers});
    RC_ASSERT(cluster.graph.atom_count() == std::size_t{size.routers});  // a router is a part of its host
    RC_ASSERT(cluster.graph.port_count() == 2 * std::size_t{size.routers + size.links});
    std::uint32_t diameter = 0;
    for (const std::uint32_t links : cluster.graph.distances(cluster.nics[0].nic))
      diameter = std::max(diameter, links);
    // From a corner to the corner farthest away; between NICs there are two links more.
    RC_ASSERT(size.routers == 1 || diameter == size.diameter + 2);
  }));
}

TEST(Torus, WaysAreShortestWithAllChoices) {
  EXPECT_TRUE(rc::check("every way arrives after the shortest distance", [] {
    const Size size = any_size(100);
    const Cluster cluster = cluster_of(torus(size.text));
    const auto from = *rc::gen::inRange<std::uint32_t>(0, size.routers);
    const auto to = *rc::gen::inRange<std::uint32_t>(0, size.routers);
    if (from == to) return;
    const auto distance = cluster.graph.distances(cluster.nics[to].nic)[cluster.nics[from].nic];
    for (std::uint32_t choice = 0; choice < cluster.routes->choices(); ++choice)
      RC_ASSERT(links_of_way(cluster, from, to, choice) == distance);
    RC_ASSERT(walk(cluster, cluster.nics[from].nic, cluster.nics[to].nic,
                   *rc::gen::arbitrary<std::uint64_t>()) == distance);
  }));
}

TEST(Torus, AdaptiveHopsAreThoseOfAllShortestWays) {
  for (const char* sizes :
       {"[4, 3, 5]", "[4, 4, 8], twist: true", "[3, 6], twist: true", "[6, 3], twist: true",
        "[4, 8, 8], twist: true", "[5, 2, 2], wrap: false", "[2, 2, 2, 3]"}) {
    const Cluster cluster = cluster_of(torus(sizes));
    const auto search = shortest_path_routes(cluster.graph, cluster.nics);
    const std::uint32_t count = static_cast<std::uint32_t>(cluster.nics.size());
    for (std::uint32_t to = 0; to < count; to += 1 + count / 16) {
      for (std::uint32_t from = 0; from < count; ++from) {
        if (from == to) continue;
        const NodeId at = cluster.graph.port(cluster.graph.ports_of(cluster.nics[from].nic)[0]).peer_node;
        std::vector<Hop> hops;
        cluster.routes->add_adaptive_hops({.at = at, .came = {}, .destination = cluster.nics[to].nic}, hops);
        std::set<PortId> ports;
        for (const Hop& hop : hops) ports.insert(hop.port);
        EXPECT_EQ(ports, next_hop_set(*search, at, cluster.nics[to].nic))
            << sizes << " " << from << " " << to;
      }
    }
  }
}

class TorusChannels : public ::testing::TestWithParam<const char*> {};

TEST_P(TorusChannels, DoNotRunInCircles) {
  const Cluster cluster = cluster_of(torus(GetParam()));
  for (const RoutingFreedom freedom :
       {RoutingFreedom::none, RoutingFreedom::detours, RoutingFreedom::adaptive}) {
    const DependencyCycle cycle = find_cycle(cluster.graph, *cluster.routes, freedom, {}, UINT64_MAX);
    EXPECT_EQ(cycle.followed, cycle.destinations);
    EXPECT_EQ(describe(cycle, cluster.graph, true), "") << static_cast<int>(freedom);
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, TorusChannels,
                         ::testing::Values("[5]", "[4, 4]", "[3, 4, 3]", "[6, 2, 3]", "[3, 3, 3, 3]",
                                           "[4, 5], wrap: [true, false]", "[4, 4], wrap: false",
                                           "[3, 6], twist: true", "[3, 3, 6], twist: true",
                                           "[3, 6, 6], twist: true", "[6, 3, 3], twist: true"));

TEST(Torus, OneChannelRunsInACircleAndIsNamed) {
  for (const char* sizes : {"[4]", "[5, 5]", "[4, 4, 4]"}) {
    const Cluster cluster = cluster_of(torus(sizes, "channels: 1"));
    const DependencyCycle cycle =
        find_cycle(cluster.graph, *cluster.routes, RoutingFreedom::none, {}, 100'000);
    ASSERT_GE(cycle.hops.size(), 3U) << sizes;
    for (std::size_t i = 0; i < cycle.hops.size(); ++i) {  // each leads to where the next one begins
      const Hop& next = cycle.hops[(i + 1) % cycle.hops.size()];
      EXPECT_EQ(cluster.graph.port(cycle.hops[i].port).peer_node, cluster.graph.port(next.port).node);
    }
    EXPECT_THAT(describe(cycle, cluster.graph, false), HasSubstr("router"));
  }
  const Cluster mesh = cluster_of(torus("[4, 4]", "wrap: false, channels: 1"));
  EXPECT_TRUE(find_cycle(mesh.graph, *mesh.routes, RoutingFreedom::none, {}, 100'000).hops.empty());
}

// Load of the busiest link when everyone sends one unit to everyone, over all choices alike.
double greatest_load(const std::string& yaml) {
  const Cluster cluster = cluster_of(yaml);
  std::vector<double> load(cluster.graph.port_count(), 0);
  const auto count = static_cast<std::uint32_t>(cluster.nics.size());
  const std::uint32_t choices = cluster.routes->choices();
  for (std::uint32_t from = 0; from < count; ++from) {
    for (std::uint32_t to = 0; to < count; ++to) {
      for (std::uint32_t choice = 0; from != to && choice < choices; ++choice) {
        for (const Hop& hop : way_of(cluster, from, to, choice)) load[hop.port] += 1.0 / choices;
      }
    }
  }
  double greatest = 0;
  for (PortId port = 0; port < cluster.graph.port_count(); ++port) {
    const PortSpec& spec = cluster.graph.port(port);
    const bool between = cluster.graph.node(spec.node).kind == NodeKind::fabric_switch &&
                         cluster.graph.node(spec.peer_node).kind == NodeKind::fabric_switch;
    if (between) greatest = std::max(greatest, load[port]);
  }
  return greatest;
}

// Camara et al. and TPU v4: the twist makes all dimensions alike, so that every link carries the mean.
TEST(TwistedTorus, LoadsItsLinksEvenly) {
  EXPECT_NEAR(greatest_load(torus("[4, 4, 8]")), 128, 1e-6);
  EXPECT_NEAR(greatest_load(torus("[4, 4, 8]", "twist: true")), 73.333, 0.02 * 73.3);
  EXPECT_NEAR(greatest_load(torus("[4, 8, 8]")), 256, 1e-6);
  EXPECT_NEAR(greatest_load(torus("[4, 8, 8]", "twist: true")), 184, 0.02 * 184);
}

TEST(Torus, RefusesWhatHasNoShape) {
  EXPECT_THAT(cluster_error("topology: {kind: torus}"), HasSubstr("'sizes' is missing"));
  EXPECT_THAT(cluster_error(torus("4")), HasSubstr("topology.sizes: expected a list"));
  EXPECT_THAT(cluster_error(torus("[4, 0]")), HasSubstr("topology.sizes"));
  EXPECT_THAT(cluster_error(torus("[2, 2, 2, 2, 2]")), HasSubstr("one to four"));
  EXPECT_THAT(cluster_error(torus("[4096, 4096]")), HasSubstr("1048576"));
  EXPECT_THAT(cluster_error(torus("[4, 4]", "wrap: [true]")), HasSubstr("1 entries for 2 dimensions"));
  EXPECT_THAT(cluster_error(torus("[4, 4]", "twist: true")),
              HasSubstr("topology.twist: a twisted torus has sizes"));
  EXPECT_THAT(cluster_error(torus("[4, 8]", "twist: true, wrap: [true, false]")), HasSubstr("wraps in all"));
  EXPECT_THAT(cluster_error(torus("[4]", "channels: 7")), HasSubstr("topology.channels"));
}

}  // namespace
}  // namespace netsim::torus_test
