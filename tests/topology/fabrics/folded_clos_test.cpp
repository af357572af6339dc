// Tests that the fabrics of the folded Clos family (fat_tree with its variants, leaf_spine, rail_optimized,
// rail_only, clos) have the sizes of their parameters. Their next hops agree with a search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/topology/build.h"

namespace netsim::folded_clos_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string topology(const std::string& parameters) { return "topology: {" + parameters + "}\n"; }

// Switches by tier.
std::map<int, std::size_t> switches(const Graph& graph) {
  std::map<int, std::size_t> count;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (graph.node(id).kind == NodeKind::fabric_switch) ++count[graph.node(id).tier];
  }
  return count;
}

std::string list(const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "[" + text + "]";
}

NodeId leaf_of(const Cluster& cluster, std::uint32_t gpu) {
  return access_switch(cluster.graph, cluster.gpus[gpu].nic);
}

TEST(Clos, HasTheNumbersOfItsShape) {
  EXPECT_TRUE(rc::check("switches, links and ports of random folded Clos networks", [] {
    const int tiers = *rc::gen::inRange(1, 5);
    std::vector<int> down, up, links;
    for (int t = 0; t < tiers; ++t) down.push_back(*rc::gen::inRange(1, 4));
    for (int t = 1; t < tiers; ++t) {
      up.push_back(*rc::gen::inRange(1, 4));
      links.push_back(*rc::gen::inRange(1, 3));
    }
    const Cluster cluster = cluster_of(
        topology("kind: clos, down: " + list(down) + ", up: " + list(up) + ", links: " + list(links)));
    const auto product = [](auto first, auto last) {
      return std::accumulate(first, last, std::size_t{1}, std::multiplies<>());
    };
    const std::size_t hosts = product(down.begin(), down.end());
    RC_ASSERT(cluster.nics.size() == hosts);
    std::size_t expected_links = hosts;
    const auto count = switches(cluster.graph);
    for (int t = 0; t < tiers; ++t) {
      const std::size_t here =
          product(up.begin(), up.begin() + t) * product(down.begin() + t + 1, down.end());
      RC_ASSERT(count.at(t) == here);
      if (t > 0) {
        const auto below = static_cast<std::size_t>(down[static_cast<std::size_t>(t)]);
        expected_links += here * below * static_cast<std::size_t>(links[static_cast<std::size_t>(t) - 1]);
      }
    }
    RC_ASSERT(cluster.graph.port_count() == 2 * expected_links);
  }));
}

TEST(Clos, NextHopsAreAllShortestPaths) {
  expect_shortest_paths(cluster_of(topology("kind: clos, down: [2, 3, 2], up: [2, 3], links: [2, 1]")));
  expect_shortest_paths(cluster_of(topology("kind: clos, down: [12], planes: 2") + "host: dgx_a100\n"));
  expect_shortest_paths(
      cluster_of(topology("kind: clos, down: [2, 2, 2, 2], up: [2, 2, 2]") + "hosts: 13\n"));
  expect_shortest_paths(cluster_of(topology("kind: clos, down: [1, 4], up: [3]")));
}

TEST(Clos, EachTierHasItsRate) {
  const Cluster cluster =
      cluster_of(topology("kind: clos, down: [2, 2, 2], up: [1, 1], rates: [100 Gbps, 200 Gbps, 400 Gbps]"));
  for (PortId id = 0; id < cluster.graph.port_count(); ++id) {
    const PortSpec& port = cluster.graph.port(id);
    const bool to_nic = cluster.graph.node(port.node).kind == NodeKind::nic ||
                        cluster.graph.node(port.peer_node).kind == NodeKind::nic;
    const int tier = std::max(cluster.graph.node(port.node).tier, cluster.graph.node(port.peer_node).tier);
    EXPECT_EQ(port.link.rate, (to_nic ? 100 : tier == 1 ? 200 : 400) * kGbps) << cluster.graph.port_name(id);
  }
}

TEST(Clos, RefusesListsThatDoNotFit) {
  const auto error = [](const std::string& more) { return cluster_error(topology("kind: clos, " + more)); };
  EXPECT_THAT(error("up: [1]"), HasSubstr("'down' is missing"));
  EXPECT_THAT(error("down: 4"), AllOf(HasSubstr("topology.down"), HasSubstr("list")));
  EXPECT_THAT(error("down: []"), HasSubstr("1 to 4"));
  EXPECT_THAT(error("down: [2, 2]"), HasSubstr("'up' is missing"));
  EXPECT_THAT(error("down: [2, 2], up: [1, 1]"),
              AllOf(HasSubstr("topology.up"), HasSubstr("1 are expected")));
  EXPECT_THAT(error("down: [2, 0], up: [1]"), AllOf(HasSubstr("topology.down.1"), HasSubstr("65536")));
  EXPECT_THAT(error("down: [2, 2], up: [1], links: [0]"), HasSubstr("topology.links.0"));
  EXPECT_THAT(error("down: [2, 2], up: [1], rates: [1 Gbps, 0]"), HasSubstr("topology.rates.1"));
  EXPECT_THAT(error("down: [60000, 60000], up: [1]"), HasSubstr("host ports"));
  EXPECT_THAT(error("down: [2, 4, 2, 2], up: [4096, 4096, 4096]"), HasSubstr("switches in tier"));
  EXPECT_THAT(error("down: [2, 3], up: [1], rails: 2"), HasSubstr("rails"));
}

// k-ary fat trees in two tiers, with parallel links, with fewer cores, in planes.
TEST(FatTreeVariants, HaveTheirSizes) {
  const auto count = [](const std::string& more) {
    return switches(cluster_of(topology("kind: fat_tree, k: 8, " + more)).graph);
  };
  EXPECT_EQ(count("tiers: 2"), (std::map<int, std::size_t>{{0, 8}, {1, 4}}));
  EXPECT_EQ(count("tiers: 2, links: 2"), (std::map<int, std::size_t>{{0, 4}, {1, 2}}));
  EXPECT_EQ(count("links: 2"), (std::map<int, std::size_t>{{0, 8}, {1, 8}, {2, 4}}));
  EXPECT_EQ(count("core_oversubscription: 4"), (std::map<int, std::size_t>{{0, 32}, {1, 32}, {2, 4}}));
  EXPECT_EQ(count("planes: 2}\nhost: {kind: dgx_a100"),
            (std::map<int, std::size_t>{{0, 64}, {1, 64}, {2, 32}}));
}

TEST(FatTreeVariants, NextHopsAreAllShortestPaths) {
  expect_shortest_paths(cluster_of(topology("kind: fat_tree, k: 6, tiers: 2, oversubscription: 4/3")));
  expect_shortest_paths(cluster_of(topology("kind: fat_tree, k: 8, links: 2, core_oversubscription: 2")));
}

// The k-ary trees' switches have k ports, however the links are bundled.
TEST(FatTreeVariants, SwitchesHaveKPorts) {
  for (const char* more : {"tiers: 2", "tiers: 2, links: 4", "links: 2", "links: 1"}) {
    const Cluster cluster = cluster_of(topology("kind: fat_tree, k: 8, " + std::string(more)));
    for (NodeId id = 0; id < cluster.graph.node_count(); ++id) {
      if (cluster.graph.node(id).kind != NodeKind::fabric_switch) continue;
      EXPECT_EQ(cluster.graph.ports_of(id).size(), 8u) << more << ": " << cluster.graph.node(id).name;
    }
  }
}

TEST(LeafSpine, JoinsEveryLeafToEverySpine) {
  const Cluster cluster =
      cluster_of(topology("kind: leaf_spine, leaves: 3, spines: 5, hosts_per_leaf: 4, links: 2"));
  EXPECT_EQ(cluster.host_count, 12u);
  EXPECT_EQ(switches(cluster.graph), (std::map<int, std::size_t>{{0, 3}, {1, 5}}));
  EXPECT_EQ(cluster.graph.port_count(), 2u * (12 + 3 * 5 * 2));
  expect_shortest_paths(cluster);
  const NodeId leaf = leaf_of(cluster, 0);
  EXPECT_EQ(cluster.routes->next_hops(leaf, cluster.nics[11].nic).size(), 10u);
}

// Two NICs share a leaf if and only if they are of the same rail and of the same unit of hosts.
void expect_rails(const Cluster& cluster, std::uint32_t hosts_per_leaf) {
  for (std::uint32_t a = 0; a < cluster.gpus.size(); ++a) {
    for (std::uint32_t b = 0; b < cluster.gpus.size(); ++b) {
      const Gpu &one = cluster.gpus[a], &other = cluster.gpus[b];
      const bool together =
          one.local == other.local && one.host / hosts_per_leaf == other.host / hosts_per_leaf;
      EXPECT_EQ(leaf_of(cluster, a) == leaf_of(cluster, b), together) << a << " and " << b;
    }
  }
}

TEST(RailOptimized, NicsOfARailShareALeaf) {
  const Cluster cluster =
      cluster_of(topology("kind: rail_optimized, hosts_per_leaf: 2, units: 2, spines: 4, links: 1") +
                 "host: dgx_a100\n");
  EXPECT_EQ(cluster.host_count, 4u);
  EXPECT_EQ(switches(cluster.graph), (std::map<int, std::size_t>{{0, 16}, {1, 4}}));
  expect_rails(cluster, 2);
  expect_shortest_paths(cluster);
}

TEST(RailOptimized, PodsAreJoinedByCores) {
  const Cluster cluster = cluster_of(
      topology("kind: rail_optimized, hosts_per_leaf: 1, units: 2, spines: 2, links: 1, pods: 2, cores: 3") +
      "host: dgx_a100\n");
  EXPECT_EQ(switches(cluster.graph), (std::map<int, std::size_t>{{0, 32}, {1, 4}, {2, 6}}));
  expect_rails(cluster, 1);
  expect_shortest_paths(cluster);
}

TEST(RailOptimized, DefaultsAreTheSuperPods) {
  const Cluster cluster = cluster_of(topology("kind: rail_optimized") + "host: dgx_a100\n");
  EXPECT_EQ(cluster.host_count, 128u);
  EXPECT_EQ(switches(cluster.graph), (std::map<int, std::size_t>{{0, 32}, {1, 16}}));
  for (NodeId id = 0; id < cluster.graph.node_count(); ++id) {
    if (cluster.graph.node(id).kind != NodeKind::fabric_switch) continue;
    EXPECT_EQ(cluster.graph.ports_of(id).size(), 64u);
  }
}

TEST(RailOnly, HasNoWayBetweenRails) {
  const Cluster cluster = cluster_of(
      topology("kind: rail_only, hosts_per_leaf: 2, units: 2, spines: 2, links: 1") + "host: dgx_a100\n");
  EXPECT_EQ(switches(cluster.graph), (std::map<int, std::size_t>{{0, 16}, {1, 16}}));
  expect_rails(cluster, 2);
  expect_shortest_paths(cluster);
  const auto distance = cluster.graph.fabric_distances(leaf_of(cluster, 0));
  for (std::uint32_t gpu = 0; gpu < cluster.gpus.size(); ++gpu)
    EXPECT_EQ(distance[leaf_of(cluster, gpu)] != kNoId, cluster.gpus[gpu].local == 0) << gpu;
}

TEST(RailOptimized, RefusesWhatDoesNotFit) {
  EXPECT_THAT(cluster_error(topology("kind: rail_optimized, rails: 4, units: 8") + "host: dgx_a100\n"),
              AllOf(HasSubstr("topology"), HasSubstr("NIC 4"), HasSubstr("4 rails")));
  EXPECT_THAT(cluster_error(topology("kind: rail_optimized, hosts_per_leaf: 2")),
              AllOf(HasSubstr("host 8"), HasSubstr("8 rails")));
  EXPECT_THAT(cluster_error(topology("kind: leaf_spine, planes: 2")),
              AllOf(HasSubstr("plane 0"), HasSubstr("host 16"), HasSubstr("modulo 2")));
  EXPECT_THAT(cluster_error(topology("kind: rail_optimized, spines: 0")), HasSubstr("topology.spines"));
  EXPECT_THAT(cluster_error(topology("kind: rail_only, pods: 2")), HasSubstr("2 pods"));
}

}  // namespace
}  // namespace netsim::folded_clos_test
