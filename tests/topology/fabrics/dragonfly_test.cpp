// Dragonflies and dragonflies+: shape, ways, channels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <string>

#include "tests/topology/build.h"
#include "tests/topology/ways.h"

namespace netsim::dragonfly_test {
namespace {

using ::testing::HasSubstr;

std::string dragonfly(std::uint32_t p, std::uint32_t a, std::uint32_t h, std::uint32_t g) {
  return "topology: {kind: dragonfly, p: " + std::to_string(p) + ", a: " + std::to_string(a) +
         ", h: " + std::to_string(h) + ", g: " + std::to_string(g) + "}\n";
}
std::string dragonfly_plus(std::uint32_t p, std::uint32_t leaves, std::uint32_t spines, std::uint32_t h,
                           std::uint32_t g) {
  return "topology: {kind: dragonfly_plus, p: " + std::to_string(p) + ", leaves: " + std::to_string(leaves) +
         ", spines: " + std::to_string(spines) + ", h: " + std::to_string(h) + ", g: " + std::to_string(g) +
         "}\n";
}

// Returns the group of a switch from its name: the part between its kind and the underscore.
std::string group_of(const Graph& graph, NodeId id) {
  const std::string& name = graph.node(id).name;
  const std::size_t digits = name.find_first_of("0123456789");
  return name.substr(digits, name.find('_') - digits);
}

// Cables between each two groups.
std::map<std::pair<std::string, std::string>, std::size_t> cables(const Graph& graph) {
  std::map<std::pair<std::string, std::string>, std::size_t> count;
  for (PortId port = 0; port < graph.port_count(); ++port) {
    const PortSpec& spec = graph.port(port);
    if (graph.node(spec.node).kind != NodeKind::fabric_switch) continue;
    if (graph.node(spec.peer_node).kind != NodeKind::fabric_switch) continue;
    const auto ends = std::pair(group_of(graph, spec.node), group_of(graph, spec.peer_node));
    if (ends.first != ends.second) ++count[ends];
  }
  return count;
}

void expect_evenly_joined(const Cluster& cluster, std::size_t groups, std::size_t links, std::size_t ports) {
  const auto count = cables(cluster.graph);
  RC_ASSERT(count.size() == groups * (groups - 1));
  for (const auto& [ends, cables_between] : count) RC_ASSERT(cables_between == links);
  std::map<NodeId, std::size_t> held;
  for (PortId port = 0; port < cluster.graph.port_count(); ++port) {
    const PortSpec& spec = cluster.graph.port(port);
    const bool between = cluster.graph.node(spec.node).kind == NodeKind::fabric_switch &&
                         cluster.graph.node(spec.peer_node).kind == NodeKind::fabric_switch;
    if (between && group_of(cluster.graph, spec.node) != group_of(cluster.graph, spec.peer_node))
      ++held[spec.node];
  }
  for (const auto& [node, cables_held] : held) RC_ASSERT(cables_held <= ports);
}

// Checks the largest number of links of minimal paths, and of paths over any third group.
void expect_ways(const Cluster& cluster, std::uint32_t straight, std::uint32_t detour) {
  const auto count = static_cast<std::uint32_t>(cluster.nics.size());
  const auto from = *rc::gen::inRange<std::uint32_t>(0, count),
             to = *rc::gen::inRange<std::uint32_t>(0, count);
  if (from == to) return;
  const std::uint32_t links = links_of_way(cluster, from, to, 0);
  RC_ASSERT(links >= 2u && links <= straight);
  const std::uint32_t walked =
      walk(cluster, cluster.nics[from].nic, cluster.nics[to].nic, *rc::gen::arbitrary<std::uint64_t>());
  RC_ASSERT(walked >= 2u && walked <= straight);
  for (std::uint32_t via = 0; via < cluster.routes->intermediates(); ++via) {
    if (cluster.routes->passes(cluster.nics[from].nic, via) ||
        cluster.routes->passes(cluster.nics[to].nic, via))
      continue;
    const std::uint32_t round = links_of_way(cluster, from, to, 0, via);
    RC_ASSERT(round >= 4u && round <= detour);
  }
}

TEST(Dragonfly, HasTheShapeOfItsLetters) {
  EXPECT_TRUE(rc::check("switches, cables, ways", [] {
    const auto p = *rc::gen::inRange<std::uint32_t>(1, 4), a = *rc::gen::inRange<std::uint32_t>(1, 6);
    const auto h = *rc::gen::inRange<std::uint32_t>(1, 4);
    const auto g = *rc::gen::inRange<std::uint32_t>(2, a * h + 2);
    const Cluster cluster = cluster_of(dragonfly(p, a, h, g));
    const std::uint32_t links = a * h / (g - 1);
    RC_ASSERT(cluster.nics.size() == std::size_t{p} * a * g);
    RC_ASSERT(cluster.graph.node_count() == cluster.nics.size() + std::size_t{a} * g);
    RC_ASSERT(cluster.graph.port_count() ==
              2 * cluster.nics.size() + std::size_t{g} * a * (a - 1) + std::size_t{g} * (g - 1) * links);
    expect_evenly_joined(cluster, g, links, h);
    expect_ways(cluster, 5, 7);
  }));
}

TEST(DragonflyPlus, HasTheShapeOfItsNumbers) {
  EXPECT_TRUE(rc::check("switches, cables, ways", [] {
    const auto p = *rc::gen::inRange<std::uint32_t>(1, 4), leaves = *rc::gen::inRange<std::uint32_t>(1, 4);
    const auto spines = *rc::gen::inRange<std::uint32_t>(1, 4), h = *rc::gen::inRange<std::uint32_t>(1, 4);
    const auto g = *rc::gen::inRange<std::uint32_t>(2, spines * h + 2);
    const Cluster cluster = cluster_of(dragonfly_plus(p, leaves, spines, h, g));
    const std::uint32_t links = spines * h / (g - 1);
    RC_ASSERT(cluster.nics.size() == std::size_t{p} * leaves * g);
    RC_ASSERT(cluster.graph.port_count() == 2 * cluster.nics.size() + 2 * std::size_t{g} * leaves * spines +
                                                std::size_t{g} * (g - 1) * links);
    expect_evenly_joined(cluster, g, links, h);
    expect_ways(cluster, 5, 8);
  }));
}

TEST(Dragonfly, ChannelsDoNotRunInCircles) {
  for (const std::string& yaml :
       {dragonfly(1, 4, 2, 9), dragonfly(2, 3, 2, 4), dragonfly(1, 5, 1, 2), dragonfly(1, 4, 1, 1),
        dragonfly_plus(1, 2, 2, 2, 5), dragonfly_plus(1, 3, 2, 3, 3), dragonfly_plus(1, 2, 3, 1, 1)}) {
    const Cluster cluster = cluster_of(yaml);
    for (const RoutingFreedom freedom :
         {RoutingFreedom::none, RoutingFreedom::detours, RoutingFreedom::adaptive}) {
      const DependencyCycle cycle = find_cycle(cluster.graph, *cluster.routes, freedom, {}, UINT64_MAX);
      EXPECT_EQ(cycle.followed, cycle.destinations);
      EXPECT_EQ(describe(cycle, cluster.graph, true), "") << yaml << static_cast<int>(freedom);
    }
  }
}

// Kim et al.: with one channel fewer than hops between groups there are cycles.
TEST(Dragonfly, NeedsItsChannels) {
  const auto cycle = [](const std::string& yaml, RoutingFreedom freedom) {
    const Cluster cluster = cluster_of(yaml);
    return !find_cycle(cluster.graph, *cluster.routes, freedom, {}, UINT64_MAX).hops.empty();
  };
  const std::string shape = "topology: {kind: dragonfly, p: 1, a: 4, h: 2, g: 9, channels: ";
  EXPECT_TRUE(cycle(shape + "1}", RoutingFreedom::none));
  EXPECT_FALSE(cycle(shape + "2}", RoutingFreedom::none));
  EXPECT_TRUE(cycle(shape + "2}", RoutingFreedom::detours));
  EXPECT_FALSE(cycle(shape + "3}", RoutingFreedom::detours));
}

TEST(Dragonfly, RefusesWhatHasNoShape) {
  EXPECT_THAT(
      cluster_error(dragonfly(2, 4, 2, 10)),
      HasSubstr("10 groups need 9 global cables of each, with 1 between each two; its 4 switches with h = 2 "
                "have ports for 8"));
  EXPECT_THAT(cluster_error("topology: {kind: dragonfly, p: 2, a: 4, h: 2, g: 5, links: 3}"),
              HasSubstr("need 12 global cables"));
  EXPECT_THAT(cluster_error(dragonfly(0, 4, 2, 9)), HasSubstr("topology.p"));
  EXPECT_THAT(cluster_error(dragonfly(1024, 1024, 1024, 9)), HasSubstr("host ports"));
  EXPECT_THAT(cluster_error(dragonfly_plus(1, 2, 2, 1, 4)),
              HasSubstr("its 2 switches with h = 1 have ports for 2"));
}

}  // namespace
}  // namespace netsim::dragonfly_test
