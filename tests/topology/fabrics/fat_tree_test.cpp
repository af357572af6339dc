// Has the fat tree the size and shape of the textbook, and do its arithmetic next hops agree with a search?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <string>

#include "tests/topology/build.h"

namespace netsim::fat_tree_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string fat_tree(int k, const std::string& more = "") {
  return "topology: {kind: fat_tree, k: " + std::to_string(k) + (more.empty() ? "" : ", " + more) + "}\n";
}

struct Counts {
  std::size_t edges = 0, aggregations = 0, cores = 0;
};

Counts switches(const Graph& graph) {
  Counts counts;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::fabric_switch) continue;
    (node.tier == 0 ? counts.edges : node.tier == 1 ? counts.aggregations : counts.cores) += 1;
  }
  return counts;
}

class FatTreeSizes : public ::testing::TestWithParam<int> {};

TEST_P(FatTreeSizes, AreThoseOfTheTextbook) {
  const auto k = static_cast<std::size_t>(GetParam());
  const Cluster cluster = cluster_of(fat_tree(GetParam()));
  const Counts counts = switches(cluster.graph);
  EXPECT_EQ(cluster.host_count, k * k * k / 4);
  EXPECT_EQ(cluster.nics.size(), k * k * k / 4);
  EXPECT_EQ(counts.edges, k * k / 2);
  EXPECT_EQ(counts.aggregations, k * k / 2);
  EXPECT_EQ(counts.cores, k * k / 4);
  EXPECT_EQ(cluster.graph.port_count(),
            2 * 3 * k * k * k / 4);  // three tiers of links, each as many as hosts
  EXPECT_EQ(cluster.graph.atom_count(), cluster.graph.node_count());
  for (NodeId id = 0; id < cluster.graph.node_count(); ++id) {
    const std::size_t ports = cluster.graph.ports_of(id).size();
    EXPECT_EQ(ports, cluster.graph.node(id).kind == NodeKind::nic ? 1 : k) << cluster.graph.node(id).name;
  }
}

INSTANTIATE_TEST_SUITE_P(Radix, FatTreeSizes, ::testing::Values(2, 4, 6, 8, 16));

TEST(FatTree, OversubscriptionAddsHostPortsToTheEdges) {
  const Cluster cluster = cluster_of(fat_tree(4, "oversubscription: 3"));
  EXPECT_EQ(cluster.host_count, 8u * 6u);
  EXPECT_EQ(switches(cluster.graph).edges, 8u);
  const NodeId edge = cluster.graph.port(cluster.graph.ports_of(cluster.nics[0].nic)[0]).peer_node;
  EXPECT_EQ(cluster.graph.ports_of(edge).size(), 6u + 2u);
  EXPECT_EQ(cluster_of(fat_tree(6, "oversubscription: 4/3")).host_count, 18u * 4u);
  EXPECT_EQ(cluster_of(fat_tree(8, "oversubscription: 1.25")).host_count, 32u * 5u);
}

TEST(FatTree, NextHopsAreAllShortestPaths2) { expect_shortest_paths(cluster_of(fat_tree(2))); }
TEST(FatTree, NextHopsAreAllShortestPaths4) { expect_shortest_paths(cluster_of(fat_tree(4))); }
TEST(FatTree, NextHopsAreAllShortestPaths6) { expect_shortest_paths(cluster_of(fat_tree(6))); }
TEST(FatTree, NextHopsAreAllShortestPathsOversubscribed) {
  expect_shortest_paths(cluster_of(fat_tree(4, "oversubscription: 3")));
  expect_shortest_paths(cluster_of(fat_tree(6, "oversubscription: 5/3")));
}
TEST(FatTree, NextHopsAreAllShortestPathsWithFreePorts) {
  expect_shortest_paths(cluster_of(fat_tree(4) + "hosts: 11\n"));
}

TEST(FatTree, DistancesAreTwoFourOrSixLinks) {
  const Cluster cluster = cluster_of(fat_tree(4));
  std::map<std::uint32_t, int> count;
  const auto distance = cluster.graph.distances(cluster.nics[0].nic);
  for (NodeId nic : nic_nodes(cluster)) count[distance[nic]] += 1;
  EXPECT_EQ(count, (std::map<std::uint32_t, int>{{0, 1}, {2, 1}, {4, 2}, {6, 12}}));
}

TEST(FatTree, WalksArriveWhateverTheChoices) {
  EXPECT_TRUE(rc::check("walks with any choices take the shortest distance", [] {
    const int half = *rc::gen::inRange(1, 6);
    const int ports = *rc::gen::inRange(half, 4 * half + 1);
    const auto room = static_cast<std::uint32_t>(2 * half * half * ports);
    const auto hosts = *rc::gen::inRange<std::uint32_t>(2, room + 1);
    const auto from = *rc::gen::inRange<std::uint32_t>(0, hosts);
    const auto to = (from + *rc::gen::inRange<std::uint32_t>(1, hosts)) % hosts;
    const std::string ratio = std::to_string(ports) + "/" + std::to_string(half);
    const Cluster cluster =
        cluster_of(fat_tree(2 * half, "oversubscription: " + ratio) + "hosts: " + std::to_string(hosts));
    const std::uint32_t links =
        walk(cluster, cluster.nics[from].nic, cluster.nics[to].nic, *rc::gen::arbitrary<std::uint64_t>());
    RC_ASSERT(links == cluster.graph.distances(cluster.nics[from].nic)[cluster.nics[to].nic]);
  }));
}

TEST(FatTree, NamesAndTiersOfSwitches) {
  const Cluster cluster = cluster_of(fat_tree(4));
  std::map<std::string, int> tier;
  for (NodeId id = 0; id < cluster.graph.node_count(); ++id)
    tier[cluster.graph.node(id).name] = cluster.graph.node(id).tier;
  EXPECT_EQ(tier.size(), cluster.graph.node_count());  // no name twice
  EXPECT_EQ(tier.at("edge7"), 0);
  EXPECT_EQ(tier.at("agg7"), 1);
  EXPECT_EQ(tier.at("core3"), 2);
  EXPECT_EQ(tier.count("host15"), 1u);
  EXPECT_EQ(tier.count("edge8"), 0u);
}

// Core c of group j is joined to aggregation switch j of each pod.
TEST(FatTree, CoresAreJoinedByGroups) {
  const Cluster cluster = cluster_of(fat_tree(6));
  for (NodeId id = 0; id < cluster.graph.node_count(); ++id) {
    const Node& node = cluster.graph.node(id);
    if (node.tier != 2) continue;
    const int core = std::stoi(node.name.substr(4));
    for (std::uint32_t pod = 0; pod < 6; ++pod) {
      const NodeId peer = cluster.graph.port(cluster.graph.ports_of(id)[pod]).peer_node;
      EXPECT_EQ(cluster.graph.node(peer).name, "agg" + std::to_string(static_cast<int>(pod) * 3 + core / 3));
    }
  }
}

TEST(FatTree, LinksHaveTheConfiguredRates) {
  const Cluster cluster = cluster_of(fat_tree(4, "rate: 200 Gbps, uplink_rate: 400 Gbps, delay: 500 ns"));
  for (PortId p = 0; p < cluster.graph.port_count(); ++p) {
    const PortSpec& port = cluster.graph.port(p);
    const bool host_link = cluster.graph.node(port.node).kind == NodeKind::nic ||
                           cluster.graph.node(port.peer_node).kind == NodeKind::nic;
    EXPECT_EQ(port.link.rate, (host_link ? 200 : 400) * kGbps);
    EXPECT_EQ(port.link.delay, 500 * kNanosecond);
    EXPECT_EQ(port.link.overhead, 20);
    EXPECT_EQ(port.link.kind, LinkKind::ethernet);
    EXPECT_FALSE(port.link.cut_through);
  }
}

TEST(FatTree, UplinksAreAsFastAsHostLinksByDefault) {
  const Cluster cluster = cluster_of(fat_tree(4, "rate: 200 Gbps"));
  for (PortId p = 0; p < cluster.graph.port_count(); ++p)
    EXPECT_EQ(cluster.graph.port(p).link.rate, 200 * kGbps);
}

TEST(FatTree, RefusesWhatHasNoShape) {
  EXPECT_THAT(cluster_error(fat_tree(5)),
              AllOf(HasSubstr("test.yaml:1:"), HasSubstr("topology.k"), HasSubstr("even")));
  EXPECT_THAT(cluster_error(fat_tree(0)), HasSubstr("topology.k"));
  EXPECT_THAT(cluster_error(fat_tree(-4)), HasSubstr("topology.k"));
  EXPECT_THAT(cluster_error(fat_tree(4, "oversubscription: 1.3")),
              AllOf(HasSubstr("topology.oversubscription"), HasSubstr("2.6"), HasSubstr("n / 2")));
  EXPECT_THAT(cluster_error(fat_tree(4, "oversubscription: 1/2")), HasSubstr("topology.oversubscription"));
  EXPECT_THAT(cluster_error(fat_tree(4, "delay: 0")), HasSubstr("topology.delay"));
  EXPECT_THAT(cluster_error(fat_tree(4, "rate: 0")), HasSubstr("topology.rate"));
  EXPECT_THAT(cluster_error(fat_tree(4, "uplink_rate: 10 bps")), HasSubstr("topology.uplink_rate"));
  EXPECT_THAT(cluster_error(fat_tree(4, "oversubscribtion: 2")), HasSubstr("oversubscription"));
  EXPECT_THAT(cluster_error(fat_tree(128, "oversubscription: 64")), HasSubstr("host ports"));
  EXPECT_THAT(cluster_error(fat_tree(8, "links: 3")),
              AllOf(HasSubstr("topology.links"), HasSubstr("k/2 = 4")));
  EXPECT_THAT(cluster_error(fat_tree(8, "tiers: 2, core_oversubscription: 2")),
              HasSubstr("topology.core_oversubscription"));
  EXPECT_THAT(cluster_error(fat_tree(8, "core_oversubscription: 3")),
              AllOf(HasSubstr("topology.core_oversubscription"), HasSubstr("4 / n")));
}

}  // namespace
}  // namespace netsim::fat_tree_test
