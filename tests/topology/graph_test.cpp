// Does the graph keep what it is given, number ports in pairs and measure distances?
#include "sim/topology/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "sim/topology/link_names.h"

namespace netsim::graph_test {
namespace {

using ::testing::ElementsAre;

// a - s0 - s1 - b, and a second way a - x - b through a host's inside.
struct Sample {
  Graph graph;
  NodeId a, b, s0, s1, x;
  Sample() {
    const AtomId host = graph.add_atom();
    a = graph.add_node(NodeKind::nic, host, "a");
    b = graph.add_node(NodeKind::nic, host, "b");
    x = graph.add_node(NodeKind::gpu, host, "x");
    s0 = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "s0", 0);
    s1 = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "s1", 1);
    graph.add_link(a, s0, LinkSpec{});
    graph.add_link(s0, s1, LinkSpec{});
    graph.add_link(s1, b, LinkSpec{});
    graph.add_link(a, x, LinkSpec{.kind = LinkKind::pcie});
    graph.add_link(x, b, LinkSpec{.kind = LinkKind::pcie});
  }
};

TEST(Graph, NumbersNodesPortsAndAtomsDensely) {
  const Sample s;
  EXPECT_EQ(s.graph.node_count(), 5u);
  EXPECT_EQ(s.graph.port_count(), 10u);
  EXPECT_EQ(s.graph.atom_count(), 3u);
  EXPECT_EQ(s.graph.node(s.s1).name, "s1");
  EXPECT_EQ(s.graph.node(s.s1).tier, 1);
  EXPECT_EQ(s.graph.node(s.x).atom, s.graph.node(s.a).atom);
}

TEST(Graph, TheOtherDirectionOfAPortIsItsNeighbour) {
  const Sample s;
  for (PortId p = 0; p < s.graph.port_count(); ++p) {
    EXPECT_EQ(s.graph.port(p).node, s.graph.port(p ^ 1).peer_node);
    EXPECT_EQ(s.graph.port(p).peer_node, s.graph.port(p ^ 1).node);
  }
}

TEST(Graph, EachDirectionHasItsOwnLink) {
  Graph graph;
  const NodeId a = graph.add_node(NodeKind::gpu, graph.add_atom(), "a");
  const NodeId b = graph.add_node(NodeKind::gpu, graph.add_atom(), "b");
  const PortId forward = graph.add_link(a, b, LinkSpec{.rate = 1}, LinkSpec{.rate = 2, .cut_through = true});
  EXPECT_EQ(graph.port(forward).node, a);
  EXPECT_EQ(graph.port(forward).link.rate, 1);
  EXPECT_FALSE(graph.port(forward).link.cut_through);
  EXPECT_EQ(graph.port(forward ^ 1).link.rate, 2);
  EXPECT_TRUE(graph.port(forward ^ 1).link.cut_through);
}

TEST(Graph, ListsPortsInTheOrderOfTheLinks) {
  const Sample s;
  EXPECT_THAT(s.graph.ports_of(s.s0), ElementsAre(1, 2));
  EXPECT_THAT(s.graph.ports_of(s.a), ElementsAre(0, 6));
  EXPECT_EQ(s.graph.port_name(2), "s0->s1");
  EXPECT_EQ(s.graph.port_name(3), "s1->s0");
}

// Cables of a bundle have numbers, whichever end is asked; a single one has none.
TEST(Graph, CablesOfABundleHaveNamesOfTheirOwn) {
  Graph graph;
  const NodeId a = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "a");
  const NodeId b = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "b");
  const NodeId c = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "c");
  const PortId first = graph.add_link(a, b, LinkSpec{});
  const PortId other = graph.add_link(a, c, LinkSpec{});
  const PortId second = graph.add_link(b, a, LinkSpec{});
  EXPECT_EQ(graph.port_name(first), "a->b#1");
  EXPECT_EQ(graph.port_name(second), "b->a#2");
  EXPECT_EQ(graph.port_name(second ^ 1U), "a->b#2");
  EXPECT_EQ(graph.port_name(other), "a->c");
  EXPECT_EQ(bundle_name(graph, first), "a->b");
  EXPECT_TRUE(means_port(graph, first, "a->b"));
  EXPECT_TRUE(means_port(graph, first, "a->b#1"));
  EXPECT_FALSE(means_port(graph, first, "a->b#2"));
  EXPECT_FALSE(means_port(graph, first, "a->bc"));
  EXPECT_TRUE(means_link(graph, second, "b-a#2"));
  EXPECT_EQ(port_to(graph, a, "b"), first);
  EXPECT_EQ(port_to(graph, a, "b#2"), second ^ 1U);
  EXPECT_EQ(port_to(graph, a, "b#3"), kNoId);
  EXPECT_EQ(port_to(graph, a, "d"), kNoId);
}

TEST(Graph, PortListsStayWhereTheyAreWhenTheGraphIsMoved) {
  Sample s;
  const PortId* before = s.graph.ports_of(s.s0).data();
  const Graph moved = std::move(s.graph);
  EXPECT_EQ(moved.ports_of(s.s0).data(), before);
}

TEST(Graph, MeasuresDistancesInLinks) {
  const Sample s;
  EXPECT_THAT(s.graph.distances(s.a), ElementsAre(0, 2, 1, 1, 2));
  EXPECT_THAT(s.graph.distances(s.s1), ElementsAre(2, 1, 2, 1, 0));
}

TEST(Graph, FabricDistancesDoNotPassThroughHosts) {
  const Sample s;
  EXPECT_THAT(s.graph.fabric_distances(s.s0), ElementsAre(kNoId, kNoId, kNoId, 0, 1));
}

TEST(Graph, SaysWhereThereIsNoWay) {
  Graph graph;
  const NodeId a = graph.add_node(NodeKind::gpu, graph.add_atom(), "a");
  const NodeId b = graph.add_node(NodeKind::gpu, graph.add_atom(), "b");
  EXPECT_THAT(graph.distances(a), ElementsAre(0, kNoId));
  EXPECT_THAT(graph.distances(b), ElementsAre(kNoId, 0));
}

TEST(Graph, NamesLinkKinds) {
  EXPECT_STREQ(to_string(LinkKind::ethernet), "ethernet");
  EXPECT_STREQ(to_string(LinkKind::infiniband), "infiniband");
  EXPECT_STREQ(to_string(LinkKind::pcie), "pcie");
  EXPECT_STREQ(to_string(LinkKind::nvlink), "nvlink");
}

}  // namespace
}  // namespace netsim::graph_test
