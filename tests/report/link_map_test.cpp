// Does the map of report.html have each switch and host once, and the use of each link on its line?
#include "sim/report/page/link_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/report/fixtures.h"
#include "tests/topology/build.h"

namespace netsim::link_map_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// MappedRun: a cluster and results of its links, of which none has carried packets.
struct MappedRun {
  explicit MappedRun(const std::string& yaml) : cluster(cluster_of(yaml)) {
    results.simulated = kMillisecond;
    results.links = test::links_of(cluster.graph);
  }
  // Lets the first port from one node to another be busy for a share of the run.
  void use(const std::string& from, const std::string& to, double share, Bytes queue) {
    const Graph& graph = cluster.graph;
    for (PortId port = 0; port < graph.port_count(); ++port) {
      if (graph.node(graph.port(port).node).name != from) continue;
      if (graph.node(graph.port(port).peer_node).name != to) continue;
      PortCounters& counters = results.links[port].counters;
      counters.busy = static_cast<Time>(share * static_cast<double>(results.simulated));
      counters.max_queue = queue;
      return;
    }
    ADD_FAILURE() << "no port from " << from << " to " << to;
  }
  LinkMap map() const { return link_map(cluster, results); }

  Cluster cluster;
  Results results;
};

std::multiset<std::string> names(const LinkMap& map, const std::string& kind) {
  std::multiset<std::string> found;
  for (const LinkMap::Node& node : map.nodes) {
    if (node.kind == kind) found.insert(node.name);
  }
  return found;
}

// Returns the line between two nodes.
LinkMap::Line line_of(const LinkMap& map, const std::string& a, const std::string& b) {
  for (const LinkMap::Line& line : map.lines) {
    const std::string &from = map.nodes[line.from].name, &to = map.nodes[line.to].name;
    if ((from == a && to == b) || (from == b && to == a)) return line;
  }
  ADD_FAILURE() << "no line between " << a << " and " << b;
  return {};
}

// Expects that the boxes of a row do not overlap, and that all are within the map.
void expect_room(const LinkMap& map) {
  std::map<double, std::vector<const LinkMap::Node*>> rows;
  for (const LinkMap::Node& node : map.nodes) {
    EXPECT_GE(node.x - node.width / 2, 0) << node.name;
    EXPECT_LE(node.x + node.width / 2, map.width) << node.name;
    EXPECT_LE(node.y, map.height) << node.name;
    rows[node.y].push_back(&node);
  }
  for (auto& [y, row] : rows) {
    std::sort(row.begin(), row.end(), [](const auto* a, const auto* b) { return a->x < b->x; });
    for (std::size_t i = 1; i < row.size(); ++i) {
      EXPECT_LE(row[i - 1]->x + row[i - 1]->width / 2, row[i]->x - row[i]->width / 2)
          << row[i - 1]->name << " and " << row[i]->name;
    }
  }
}

TEST(LinkMap, HasEachSwitchHostAndLinkOnce) {
  const LinkMap map = MappedRun("topology: {kind: fat_tree, k: 4}").map();
  EXPECT_EQ(names(map, "switch").size(), 20U);
  EXPECT_EQ(names(map, "host").size(), 16U);
  EXPECT_EQ(map.lines.size(), 48U);
  EXPECT_THAT(map.notes, IsEmpty());
  std::set<double> rows;
  for (const LinkMap::Node& node : map.nodes) rows.insert(node.y);
  EXPECT_EQ(rows.size(), 4U);
  expect_room(map);
}

TEST(LinkMap, ALineHasTheUseOfBothDirectionsOfAllItsLinks) {
  MappedRun run("topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1, links: 2}");
  run.use("leaf0", "spine0", 0.8, 5000);
  run.use("spine0", "leaf0", 0.4, 7000);
  const LinkMap map = run.map();
  const LinkMap::Line line = line_of(map, "leaf0", "spine0");
  EXPECT_EQ(line.links, 2U);
  EXPECT_NEAR(line.mean, (0.8 + 0.4) / 4, 1e-6);
  EXPECT_NEAR(line.maximum, 0.8, 1e-6);
  EXPECT_EQ(line.longest_queue, 7000);
  EXPECT_EQ(line_of(map, "leaf1", "spine0").maximum, 0);
}

TEST(LinkMap, HasLinksBetweenRoutersOfAHost) {
  const LinkMap map = MappedRun("topology: {kind: torus, sizes: [2, 4]}\nhost: dgx_a100\n").map();
  EXPECT_EQ(map.nodes.size(), 8U);
  EXPECT_EQ(map.lines.size(), 4U + 8);  // four pairs, and two rings of four
}

TEST(LinkMap, FoldsRowsThatAreTooLongAndSaysSo) {
  const LinkMap map = MappedRun("topology: {kind: fat_tree, k: 16}").map();
  EXPECT_LT(map.nodes.size(), 500U);
  EXPECT_FALSE(map.notes.empty());
  EXPECT_LE(map.lines.size(), LinkMap::kMostLines);
  expect_room(map);
}

// Switches of one tier stand on a cycle, and hosts that share a switch are one box with both names.
TEST(LinkMap, SwitchesOfOneTierStandOnACycle) {
  const LinkMap map = MappedRun(R"(
topology:
  kind: custom
  rate: 100 Gbps
  delay: 1 us
  switches: [s0, s1, s2]
  links:
    - {from: host0, to: s0}
    - {from: host2, to: s0}
    - {from: host1, to: s1}
    - {from: s0, to: s1}
    - {from: s1, to: s2}
    - {from: s2, to: s0}
)")
                          .map();
  EXPECT_THAT(names(map, "switch"), ElementsAre("s0", "s1", "s2"));
  EXPECT_THAT(names(map, "host"), ElementsAre("host0, host2", "host1"));
  EXPECT_EQ(line_of(map, "s0", "host0, host2").links, 2U);
  EXPECT_EQ(map.lines.size(), 5U);
}

}  // namespace
}  // namespace netsim::link_map_test
