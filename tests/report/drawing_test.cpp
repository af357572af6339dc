// Do drawings show each used switch and host once, links in the colours of rates or rails, and insides of
// hosts? Long rows are folded, and no line crosses a name.
#include "sim/report/drawing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/report/canvas.h"
#include "tests/report/picture_check.h"
#include "tests/topology/build.h"

namespace netsim::drawing_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string drawing(const std::string& yaml) { return draw_cluster(cluster_of(yaml)); }

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Drawing, ShowsEachSwitchAndHostOnce) {
  const std::string svg = drawing("topology: {kind: fat_tree, k: 4}");
  for (const char* name : {">edge7</text>", ">agg0</text>", ">core3</text>", ">host15</text>"})
    EXPECT_EQ(count(svg, name), 1u) << name;
  EXPECT_EQ(count(svg, "<path"), 16u * 3 + 1);  // and one in the legend
  EXPECT_THAT(svg, HasSubstr("1 x 100 Gbps ethernet"));
}

TEST(Drawing, BundlesParallelLinks) {
  const std::string svg =
      drawing("topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1, links: 3}");
  EXPECT_EQ(count(svg, "3 x 100 Gbps ethernet"), 2u);
  EXPECT_EQ(count(svg, "<path"), 2u + 2 + 1);
}

TEST(Drawing, ColoursRates) {
  const std::string svg = drawing(
      "topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1, rate: 100 Gbps, uplink_rate: "
      "400 Gbps}");
  EXPECT_EQ(count(svg, kDistinctColours[0]), 3u);
  EXPECT_EQ(count(svg, kDistinctColours[1]), 3u);
  EXPECT_THAT(svg, HasSubstr(">400 Gbps ethernet<"));
}

// Two of 16 equal pods are drawn, the first and the last, and cores with the same neighbours share a box.
TEST(Drawing, LeavesOutWhatIsTooMuch) {
  const std::string svg = drawing("topology: {kind: fat_tree, k: 16}");
  EXPECT_THAT(svg, HasSubstr("2 of 16 equal pods are drawn"));
  EXPECT_EQ(count(svg, ">+112<"), 2u);  // edges and aggregation switches
  EXPECT_EQ(count(svg, ">+896<"), 1u);  // hosts
  EXPECT_THAT(svg, HasSubstr(">edge127<"));
  EXPECT_THAT(svg, Not(HasSubstr(">edge64<")));
  EXPECT_EQ(count(svg, ">8 hosts<"), 16u);
  EXPECT_THAT(svg, HasSubstr(">core56-63<"));
  const std::string star = drawing("topology: {kind: leaf_spine, leaves: 40, spines: 2, hosts_per_leaf: 2}");
  EXPECT_THAT(star, HasSubstr(">+17<"));
  EXPECT_THAT(star, HasSubstr(">leaf39<"));
  for (const std::string& picture : {svg, star}) EXPECT_EQ(test::faults_of(picture), "");
}

TEST(Drawing, ShowsTheInsideOfEachKindOfHostOnce) {
  const std::string svg = drawing("topology: {kind: star, hosts: 32}\nhost: dgx_a100\n");
  EXPECT_EQ(count(svg, ">inside host"), 1u);
  EXPECT_EQ(count(svg, ">nvswitch<"), 1u);
  EXPECT_EQ(count(svg, ">gpu7<"), 1u);
  EXPECT_THAT(svg, HasSubstr("1.92 Tbps nvlink"));
}

TEST(Drawing, PutsOneTierOnACircleOrWhereTheTopologySays) {
  const std::string list =
      "topology: {kind: custom, switches: [a, b, c], links: [{from: host0, to: a}, {from: host1, to: b}, "
      "{from: host2, to: c}, {from: a, to: b}, {from: b, to: c}]}";
  Cluster cluster = cluster_of(list);
  const std::string cycle = draw_cluster(cluster);
  for (const char* name : {">host0</text>", ">host1</text>", ">host2</text>"})
    EXPECT_EQ(count(cycle, name), 1u);
  double x = 0;
  for (NodeId id = 0; id < cluster.graph.node_count(); ++id) {
    if (cluster.graph.node(id).kind == NodeKind::fabric_switch) cluster.graph.draw_at(id, {x++, 0});
  }
  const std::string placed = draw_cluster(cluster);
  EXPECT_NE(cycle, placed);
  EXPECT_EQ(count(placed, ">host2</text>"), 1u);
}

// Each box and name lies on the page as a whole, none on another, and no line crosses a name or a box.
// `boxes` is the number of boxes of switches and hosts.
TEST(Drawing, KeepsEverythingOnThePage) {
  struct Case {
    const char* yaml;
    std::size_t boxes;
  };
  for (const Case& c :
       {Case{"topology: {kind: jellyfish, switches: 4, hosts_per_switch: 2, degree: 3}", 4 + 8},
        Case{"topology: {kind: jellyfish, switches: 3, hosts_per_switch: 8, degree: 2}", 3 + 24},
        Case{"topology: {kind: jellyfish, switches: 40, hosts_per_switch: 1, degree: 3}", 40 + 40},
        Case{"topology: {kind: jellyfish, switches: 200, hosts_per_switch: 4, degree: 6}", 128 + 128},
        Case{"topology: {kind: torus, sizes: [4, 4]}", 16},
        Case{"topology: {kind: torus, sizes: [3, 3, 3]}", 27},
        Case{"topology: {kind: torus, sizes: [4, 4, 8], twist: true}", 128},
        Case{"topology: {kind: torus, sizes: [2, 2, 2, 2]}", 16},
        Case{"topology: {kind: hyperx, sizes: [6, 6], hosts_per_switch: 2}", 36 + 36},
        Case{"topology: {kind: dragonfly, p: 2, a: 4, h: 2}", 36 + 36},
        Case{"topology: {kind: fat_tree, k: 4}", 4 + 8 + 8 + 16},
        Case{"topology: {kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}", 4 + 4}}) {
    const std::string svg = drawing(c.yaml);
    EXPECT_EQ(test::faults_of(svg), "") << c.yaml;
    const std::size_t samples = count(svg, ">switch</title>") + count(svg, ">host</title>");
    EXPECT_EQ(test::PictureParts(svg).boxes.size(), c.boxes + samples) << c.yaml;
  }
}

// Links between spines and leaves, and hosts' links to them, have one colour for each rail.
TEST(Drawing, ColoursRails) {
  const std::string svg =
      drawing("topology: {kind: rail_optimized, hosts_per_leaf: 2, units: 1, spines: 1}\nhost: dgx_a100\n");
  for (const char* colour : kDistinctColours) {
    const std::string line = fmt::format("stroke=\"{}\"", colour);
    // Two hosts' links, the uplink, the link from GPU to NIC, the sample, and the borders of leaf and NIC.
    EXPECT_EQ(count(svg, line), 2U + 1 + 1 + 1 + 2) << colour;
  }
  EXPECT_THAT(svg, HasSubstr(">rail 7</text>"));
  EXPECT_THAT(drawing("topology: {kind: fat_tree, k: 4}\nhost: dgx_a100\n"), Not(HasSubstr(">rail ")));
}

// A host may hold several routers of a torus. The links between them are drawn in the colour of their class.
TEST(Drawing, ShowsLinksBetweenRoutersOfAHost) {
  const std::string svg = drawing("topology: {kind: torus, sizes: [2, 4], rate: 37 Gbps}\nhost: dgx_a100\n");
  EXPECT_THAT(svg, HasSubstr(">37 Gbps ethernet</text>"));
}

TEST(Drawing, LeavesOutSwitchesThatNoHostNeeds) {
  const std::string svg = drawing("topology: {kind: fat_tree, k: 4}\nhosts: 3\n");
  for (const char* name : {">edge0</text>", ">edge1</text>", ">agg0</text>"})
    EXPECT_THAT(svg, HasSubstr(name));
  for (const char* name : {">edge2</text>", ">agg2</text>", ">core0</text>"})
    EXPECT_THAT(svg, Not(HasSubstr(name)));
  EXPECT_THAT(svg, HasSubstr("left out: 16.<"));  // of 20 switches
}

TEST(Drawing, PutsOtherFabricsBelowTheHosts) {
  const std::string svg = drawing(
      "fabrics:\n  scale_out: {kind: star, hosts: 8}\n  storage: {kind: star, hosts: 8}\nhosts:\n  - {kind: "
      "dgx_h100, count: 1, storage_nics: 1}\n  - {kind: storage_server, count: 1, fabric: storage}\n");
  const test::PictureParts parts(svg);
  const auto top_of = [&](const std::string& name) {
    for (const test::Rectangle& box : parts.names) {
      if (box.name == name) return box.top;
    }
    return -1.0;
  };
  EXPECT_LT(top_of("switch0"), top_of("host0"));
  EXPECT_LT(top_of("host0"), top_of("storage/switch0"));
}

TEST(Drawing, EscapesNames) {
  const std::string svg = drawing(
      "topology: {kind: custom, switches: ['a<b&c'], links: [{from: host0, to: 'a<b&c'}, {from: host1, to: "
      "'a<b&c'}]}");
  EXPECT_THAT(svg, HasSubstr("a&lt;b&amp;c"));
}

}  // namespace
}  // namespace netsim::drawing_test
