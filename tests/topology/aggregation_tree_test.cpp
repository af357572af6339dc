// Aggregation trees: which root, which links, and why there is none.
#include "sim/topology/aggregation_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sim/topology/topology.h"

namespace netsim::aggregation_tree_test {
namespace {

using ::testing::HasSubstr;

class Trees {
 public:
  explicit Trees(const std::string& topology)
      : cluster(build_cluster(parse_config("topology: {" + topology + "}", "test.yaml"))),
        down(cluster.graph.port_count(), false) {}
  AggregationTree of(const std::vector<std::uint32_t>& hosts, std::uint32_t number = 0,
                     bool passes = false) const {
    std::vector<NodeId> nics;
    nics.reserve(hosts.size());
    for (const std::uint32_t host : hosts) nics.push_back(cluster.gpus[host].nic);
    return aggregation_tree(
        cluster.graph, nics, down, [this](NodeId node) { return !barred.contains(name(node)); }, number,
        passes);
  }
  std::string root(const AggregationTree& tree) const { return name(tree.switches.front().node); }
  std::string name(NodeId node) const { return cluster.graph.node(node).name; }
  void cut(const std::string& link) {
    for (PortId port = 0; port < cluster.graph.port_count(); ++port) {
      if (cluster.graph.port_name(port) == link) down[port] = true;
    }
  }

  Cluster cluster;
  std::vector<bool> down;
  std::set<std::string> barred;
};

TEST(AggregationTree, HangsEveryLeafOnTheRoot) {
  const Trees fabric("kind: fat_tree, k: 4");
  const AggregationTree tree = fabric.of({0, 1, 2, 5, 15});
  ASSERT_EQ(tree.refused, "");
  EXPECT_EQ(fabric.root(tree).substr(0, 4), "core");
  const Graph& graph = fabric.cluster.graph;
  for (std::size_t i = 0; i < 5; ++i) {
    const auto up = tree.way_up(i), down = tree.way_down(i);
    EXPECT_EQ(up.size(), 3U);
    NodeId at = graph.port(up.front()).node;
    for (const PortId port : up) {
      EXPECT_EQ(graph.port(port).node, at);
      at = graph.port(port).peer_node;
    }
    EXPECT_EQ(at, tree.switches.front().node);
    for (std::size_t j = 0; j < up.size(); ++j) EXPECT_EQ(down[j], up[up.size() - 1 - j] ^ 1U);
  }
  std::set<PortId> down;
  for (const auto& one : tree.switches) {
    EXPECT_TRUE(std::is_sorted(one.down.begin(), one.down.end()));
    down.insert(one.down.begin(), one.down.end());
    EXPECT_EQ(one.parent == kNoId, &one == &tree.switches.front());
  }
  EXPECT_EQ(down.size(), tree.switches.size() - 1 + 5);
}

TEST(AggregationTree, HasTheNearestRoot) {
  const Trees fabric("kind: fat_tree, k: 4");
  EXPECT_EQ(fabric.root(fabric.of({0, 1})).substr(0, 4), "edge");
  EXPECT_EQ(fabric.root(fabric.of({0, 3})).substr(0, 3), "agg");
  EXPECT_EQ(fabric.root(fabric.of({0, 4})).substr(0, 4), "core");
}

TEST(AggregationTree, SpreadsByNumber) {
  const Trees fabric("kind: leaf_spine, leaves: 3, spines: 2, hosts_per_leaf: 2, links: 2");
  std::set<std::string> roots;
  std::set<PortId> up;
  for (std::uint32_t number = 0; number < 4; ++number) {
    const AggregationTree tree = fabric.of({0, 2, 4}, number);
    roots.insert(fabric.root(tree));
    up.insert(tree.switches[1].up);
    EXPECT_EQ(tree.way_up(0), fabric.of({0, 2, 4}, number).way_up(0));
    EXPECT_EQ(tree.way_up(0), fabric.of({4, 2, 0}, number).way_up(2));
  }
  EXPECT_EQ(roots.size(), 2U);
  EXPECT_GE(up.size(), 2U);
}

TEST(AggregationTree, AvoidsLinksThatAreDownInEitherDirection) {
  Trees fabric("kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2");
  fabric.cut("spine1->leaf1");
  for (std::uint32_t number = 0; number < 2; ++number)
    EXPECT_EQ(fabric.root(fabric.of({0, 3}, number)), "spine0");
  fabric.cut("leaf0->spine0");
  EXPECT_THAT(fabric.of({0, 3}).refused, HasSubstr("no switches that add up join host0 with all others"));
  fabric.cut("host3->leaf1");
  EXPECT_THAT(fabric.of({0, 3}).refused, HasSubstr("no link of host3 to a switch is up"));
}

// Switches that do not add up may be on the way to a root that does.
TEST(AggregationTree, PassesOtherSwitchesWhereItMay) {
  Trees fabric("kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2");
  fabric.barred = {"leaf0", "leaf1", "spine0"};
  for (std::uint32_t number = 0; number < 2; ++number) {
    const AggregationTree tree = fabric.of({0, 1, 3}, number, true);
    EXPECT_EQ(fabric.root(tree), "spine1");
    ASSERT_EQ(tree.switches.size(), 3U);
    EXPECT_TRUE(tree.switches[0].reduces);
    EXPECT_FALSE(tree.switches[1].reduces || tree.switches[2].reduces);
  }
  EXPECT_EQ(fabric.root(fabric.of({0, 1}, 0, true)), "spine1") << "the leaf does not add up";
  fabric.barred = {"leaf0", "spine0", "spine1"};
  EXPECT_EQ(fabric.root(fabric.of({0, 3}, 0, true)), "leaf1");
  fabric.barred.insert("leaf1");
  EXPECT_THAT(fabric.of({0, 3}, 0, true).refused, HasSubstr("no switches that add up join"));
}

TEST(AggregationTree, PassesOverSwitchesThatAddUpOnly) {
  Trees fabric("kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2");
  fabric.barred = {"spine0"};
  for (std::uint32_t number = 0; number < 2; ++number)
    EXPECT_EQ(fabric.root(fabric.of({0, 3}, number)), "spine1");
  fabric.barred = {"leaf1"};
  EXPECT_THAT(fabric.of({0, 3}).refused, HasSubstr("leaf1 does not add up"));
}

// Returns the names of the nodes that a NIC's packets pass up to the root.
std::vector<std::string> nodes_up(const Trees& fabric, const AggregationTree& tree, std::size_t nic) {
  std::vector<std::string> names;
  for (const PortId port : tree.way_up(nic))
    names.push_back(fabric.name(fabric.cluster.graph.port(port).peer_node));
  return names;
}

TEST(AggregationTree, PassesTheBoxesOfItsSwitches) {
  Trees fabric(
      "kind: custom, switches: [left, right, core, a, b, c, d], links: [{from: host0, to: left}, {from: "
      "host1, to: left}, {from: host2, to: right}, {from: left, to: core}, {from: right, to: core}, {from: "
      "a, "
      "to: left}, {from: b, to: right}, {from: c, to: core}, {from: d, to: core}]");
  fabric.barred = {"left", "right", "core"};
  const AggregationTree tree = fabric.of({0, 1, 2});
  ASSERT_EQ(tree.refused, "");
  using Names = std::vector<std::string>;
  EXPECT_EQ(nodes_up(fabric, tree, 0), (Names{"left", "a", "left", "core", "c"}));
  EXPECT_EQ(nodes_up(fabric, tree, 2), (Names{"right", "b", "right", "core", "c"}));
  EXPECT_EQ(nodes_up(fabric, fabric.of({0, 1, 2}, 1), 0), (Names{"left", "a", "left", "core", "d"}))
      << "boxes of a switch are taken in turn";
  for (const AggregationTree::Switch& one : tree.switches)
    EXPECT_EQ(one.reduces, fabric.name(one.node).size() == 1) << "boxes only";

  fabric.barred = {"right", "core"};
  EXPECT_EQ(nodes_up(fabric, fabric.of({0, 1, 2}), 0), (Names{"left", "core", "c"})) << "left adds up itself";
  fabric.cut("core->c");
  EXPECT_EQ(fabric.root(fabric.of({0, 1, 2})), "d");
  fabric.cut("right->b");
  EXPECT_THAT(fabric.of({0, 1, 2}).refused, HasSubstr("right does not add up"));
}

TEST(AggregationTree, NeedsSwitchesThatAreNoHosts) {
  for (const char* direct : {"kind: torus, sizes: [3, 3]", "kind: torus, sizes: [4]"}) {
    EXPECT_THAT(Trees(direct).of({0, 1}).refused,
                HasSubstr("is a part of the host of host0: the fabric joins hosts directly"))
        << direct;
  }
}

}  // namespace
}  // namespace netsim::aggregation_tree_test
