// Does the map of report.html have each switch and host once, and the use of each link on its line?
#include "sim/report/page/link_map.h"

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/report/link_paths.h"
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

// Expects that the boxes of a row do not overlap.
void expect_room(const LinkMap& map) {
  std::map<double, std::vector<const LinkMap::Node*>> rows;
  for (const LinkMap::Node& node : map.nodes) {
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

Outline outline_of_node(const LinkMap::Node& node, double margin) {
  return outline_of({{node.x, node.y}, node.width}, margin);
}

// Returns the points along what is drawn of a line.
std::vector<std::vector<Point>> drawn(const LinkMap& map, const LinkMap::Line& line) {
  const LinkMap::Node &from = map.nodes[line.from], &to = map.nodes[line.to];
  if (line.paths.empty() && from.named_below) {  // in rows
    const auto &upper = from.y < to.y ? from : to, &lower = from.y < to.y ? to : from;
    return {{{upper.x, outline_of_node(upper, 0).high.y}, {lower.x, outline_of_node(lower, 0).low.y}}};
  }
  if (line.paths.empty()) return {{{from.x, from.y}, {to.x, to.y}}};
  std::vector<std::vector<Point>> all;
  for (const Path& path : line.paths) all.push_back(flattened(path));
  return all;
}

// Returns a text for each box that is on another one, and for each that a line passes which does not end
// there.
std::string faults_of(const LinkMap& map) {
  constexpr double kRounding = -0.1;
  std::string faults;
  for (std::size_t i = 0; i < map.nodes.size(); ++i) {
    const Outline box = outline_of_node(map.nodes[i], kRounding);
    for (std::size_t k = 0; k < i; ++k) {
      if (overlap(box, outline_of_node(map.nodes[k], kRounding)))
        faults += fmt::format("{} is on {}\n", map.nodes[i].name, map.nodes[k].name);
    }
    for (const LinkMap::Line& line : map.lines) {
      if (line.from == i || line.to == i) continue;
      for (const std::vector<Point>& points : drawn(map, line)) {
        for (std::size_t k = 1; k < points.size(); ++k) {
          if (!crosses(points[k - 1], points[k], box)) continue;
          faults += fmt::format("the line from {} to {} passes {}\n", map.nodes[line.from].name,
                                map.nodes[line.to].name, map.nodes[i].name);
          break;
        }
      }
    }
  }
  return faults;
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

// Cycles, places of the topology, and rows of which some links pass others.
TEST(LinkMap, NoLinePassesABoxThatItDoesNotEndAt) {
  for (const char* yaml :
       {"topology: {kind: jellyfish, switches: 32, hosts_per_switch: 2, degree: 6}",
        "topology: {kind: jellyfish, switches: 200, hosts_per_switch: 4, degree: 6}",
        "topology: {kind: torus, sizes: [4, 4, 8], twist: true}",
        "topology: {kind: torus, sizes: [2, 2, 2, 2]}",
        "topology: {kind: hyperx, sizes: [6, 6], hosts_per_switch: 2}",
        "topology: {kind: dragonfly, p: 2, a: 4, h: 2}", "topology: {kind: fat_tree, k: 8}",
        "topology: {kind: rail_optimized, hosts_per_leaf: 4, units: 2, spines: 2}\nhost: dgx_a100\n",
        "fabrics:\n  scale_out: {kind: rail_optimized, hosts_per_leaf: 2, units: 2, spines: 4}\n  storage: "
        "{kind: "
        "leaf_spine, leaves: 3, spines: 2, hosts_per_leaf: 4}\nhosts:\n  - {kind: dgx_h100, count: 4, "
        "storage_nics: 2}\n  - {kind: storage_server, count: 2, fabric: storage}\n",
        "topology: {kind: dragonfly_plus, p: 4, leaves: 4, spines: 4, h: 2, g: 5}",
        "topology: {kind: slim_fly, q: 5}",
        "topology: {kind: multi_dimensional, dimensions: [{shape: ring, size: 2}, {shape: full_mesh, size: "
        "8}, "
        "{shape: switch, size: 4}]}",
        "fabrics:\n  rack: {kind: nvl_rack, racks: 2}\n  scale_out: {kind: fat_tree, k: 12}\nhost: "
        "gb200\nhosts: "
        "36\n"}) {
    const LinkMap map = MappedRun(yaml).map();
    EXPECT_GT(map.lines.size(), 5U) << yaml;
    EXPECT_EQ(faults_of(map), "") << yaml;
  }
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
  EXPECT_EQ(map.nodes.at(3).short_name, "2 hosts");
  EXPECT_EQ(line_of(map, "s0", "host0, host2").links, 2U);
  EXPECT_EQ(map.lines.size(), 5U);
}

}  // namespace
}  // namespace netsim::link_map_test
