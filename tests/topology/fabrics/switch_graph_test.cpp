// Have the random, de Bruijn, Kautz and SlimFly graphs the switches, degrees and diameters of their papers?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/topology/structure.h"
#include "tests/topology/build.h"

namespace netsim::switch_graph_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string topology(const std::string& parameters) { return "topology: {" + parameters + "}\n"; }

// Links to other switches, by switch.
std::map<NodeId, std::uint32_t> degrees(const Graph& graph) {
  std::map<NodeId, std::uint32_t> degree;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (graph.node(id).kind != NodeKind::fabric_switch) continue;
    for (const PortId port : graph.ports_of(id))
      degree[id] += graph.node(graph.port(port).peer_node).kind == NodeKind::fabric_switch ? 1 : 0;
  }
  return degree;
}

std::uint32_t most(const std::map<NodeId, std::uint32_t>& degree) {
  std::uint32_t result = 0;
  for (const auto& [id, links] : degree) result = std::max(result, links);
  return result;
}

bool has_twins(const Graph& graph) {
  std::set<std::pair<NodeId, NodeId>> seen;
  for (PortId id = 0; id < graph.port_count(); ++id) {
    if (!seen.insert({graph.port(id).node, graph.port(id).peer_node}).second) return true;
  }
  return false;
}

std::size_t switches_within_two_links(const Graph& graph, NodeId from) {
  std::vector<bool> reached(graph.node_count(), false);
  const auto reach = [&](NodeId at, const auto& then) {
    for (const PortId port : graph.ports_of(at)) {
      const NodeId next = graph.port(port).peer_node;
      if (graph.node(next).kind != NodeKind::fabric_switch) continue;
      reached[next] = true;
      then(next);
    }
  };
  reached[from] = true;
  reach(from, [&](NodeId at) { reach(at, [](NodeId) {}); });
  return static_cast<std::size_t>(std::count(reached.begin(), reached.end(), true));
}

TEST(Jellyfish, IsRegularSimpleAndRoutable) {
  EXPECT_TRUE(rc::check("random regular graphs", [] {
    const int switches = *rc::gen::inRange(4, 24);
    const int degree = *rc::gen::inRange(3, switches);
    const int seed = *rc::gen::inRange(0, 1000);
    const Cluster cluster =
        cluster_of(topology("kind: jellyfish, switches: " + std::to_string(switches) +
                            ", degree: " + std::to_string(degree) + ", seed: " + std::to_string(seed) +
                            ", channel_order: hops"));  // layers leave some of the shortest paths out
    RC_ASSERT(!has_twins(cluster.graph));
    std::uint32_t links = 0;
    for (const auto& [id, count] : degrees(cluster.graph)) {
      RC_ASSERT(count <= static_cast<std::uint32_t>(degree));
      links += count;
    }
    RC_ASSERT(links >= static_cast<std::uint32_t>(switches * degree) - 1);  // at most one port stays free
    expect_shortest_paths(cluster);
  }));
}

TEST(Jellyfish, DependsOnItsSeedOnly) {
  const auto links = [](const std::string& seed) {
    const Cluster cluster = cluster_of(topology("kind: jellyfish, switches: 20, degree: 4, seed: " + seed));
    std::string text;
    for (PortId id = 0; id < cluster.graph.port_count(); ++id) text += cluster.graph.port_name(id) + "\n";
    return text;
  };
  EXPECT_EQ(links("7"), links("7"));
  EXPECT_NE(links("7"), links("8"));
}

// Singla et al., figure 5: random graphs have short paths; 245 switches of 14 ports, 3 of them for hosts, are
// within 4 links. (A bound that hardly any random regular graph misses.)
TEST(Jellyfish, HasShortPaths) {
  const Structure s =
      structure_of(cluster_of(topology("kind: jellyfish, switches: 245, degree: 11, hosts_per_switch: 3")));
  EXPECT_LE(s.diameter - 2, 4u);
  EXPECT_LT(s.mean_hops - 2, 2.6);
}

TEST(DeBruijn, HasLogarithmicDiameter) {
  for (const char* kind : {"de_bruijn", "kautz"}) {
    for (const int degree : {2, 3, 4}) {
      for (const int switches : {5, 8, 12, 16, 27, 36, 50}) {
        const Cluster cluster =
            cluster_of(topology("kind: " + std::string(kind) + ", switches: " + std::to_string(switches) +
                                ", degree: " + std::to_string(degree)));
        EXPECT_LE(most(degrees(cluster.graph)), 2u * static_cast<unsigned>(degree));
        EXPECT_FALSE(has_twins(cluster.graph));
        const double bound = std::ceil(std::log(switches) / std::log(degree) - 1e-9);
        EXPECT_LE(structure_of(cluster).diameter - 2, static_cast<std::uint32_t>(bound))
            << kind << " " << switches << " " << degree;
      }
    }
  }
}

TEST(DeBruijn, NextHopsAreAllShortestPaths) {
  expect_shortest_paths(cluster_of(topology("kind: de_bruijn, switches: 16, degree: 2")));
  expect_shortest_paths(cluster_of(topology("kind: kautz, switches: 12, degree: 2, hosts_per_switch: 2")));
}

// Besta and Hoefler, table: q = 5 is the Hoffman-Singleton graph (50 switches of degree 7). There are 2 q^2
// switches of degree (3q - d) / 2 for q = 4w + d, with diameter 2, for all prime powers up to 27.
TEST(SlimFly, HasItsDegreeAndDiameterTwo) {
  for (const int q : {3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27}) {
    const int d = q % 4 == 3 ? -1 : q % 4;
    const Cluster cluster =
        cluster_of(topology("kind: slim_fly, hosts_per_switch: 1, q: " + std::to_string(q)));
    const auto count = degrees(cluster.graph);
    EXPECT_EQ(count.size(), static_cast<std::size_t>(2 * q * q));
    EXPECT_FALSE(has_twins(cluster.graph));
    for (const auto& [id, links] : count) {
      ASSERT_EQ(links, static_cast<std::uint32_t>((3 * q - d) / 2)) << q;
      ASSERT_EQ(switches_within_two_links(cluster.graph, id), count.size()) << q;
    }
  }
}

TEST(SlimFly, HasHalfAsManyHostsAsLinks) {
  EXPECT_EQ(cluster_of(topology("kind: slim_fly, q: 5")).nics.size(), 50u * 4u);
}

TEST(SwitchGraphs, RefuseWhatCannotBe) {
  EXPECT_THAT(cluster_error(topology("kind: jellyfish, switches: 4, degree: 4")),
              AllOf(HasSubstr("topology.degree"), HasSubstr("3 others")));
  EXPECT_THAT(cluster_error(topology("kind: jellyfish, switches: 6, degree: 1")),
              HasSubstr("not all joined"));
  for (const char* q : {"6", "12", "15", "100"}) {
    EXPECT_THAT(cluster_error(topology("kind: slim_fly, q: " + std::string(q))),
                AllOf(HasSubstr("topology.q"), HasSubstr("a power of a prime")));
  }
  EXPECT_THAT(cluster_error(topology("kind: kautz, degree: 1")), HasSubstr("topology.degree"));
  EXPECT_THAT(cluster_error(topology("kind: de_bruijn, switches: 65536, hosts_per_switch: 1024")),
              HasSubstr("host ports"));
}

}  // namespace
}  // namespace netsim::switch_graph_test
