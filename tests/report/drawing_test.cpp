// Tests that a drawing shows each switch and host once, links in the colours of their rates, and the inside
// of each kind of host. Rows that are too long state how much is left out.
#include "sim/report/drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

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
  EXPECT_EQ(count(svg, "#7a8aa0"), 3u);
  EXPECT_EQ(count(svg, "#2b7bba"), 3u);
  EXPECT_THAT(svg, HasSubstr(">400 Gbps<"));
}

TEST(Drawing, LeavesOutWhatIsTooMuch) {
  const std::string svg = drawing("topology: {kind: fat_tree, k: 16}");
  EXPECT_THAT(svg, HasSubstr(">+113<"));  // edges: the first 14 and the last of 128
  EXPECT_THAT(svg, HasSubstr(">edge127<"));
  EXPECT_THAT(svg, Not(HasSubstr(">edge64<")));
  EXPECT_EQ(count(svg, ">8 hosts<"), 15u);
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
  EXPECT_THAT(placed, HasSubstr("x=\"44.0\""));  // the first, at the margin
}

// Returns a number among the attributes of an element.
double attribute(const std::string& element, const std::string& name) {
  const std::size_t at = element.find(" " + name + "=\"");
  return at == std::string::npos ? -1 : std::stod(element.substr(at + name.size() + 3));
}

// Each box lies on the page as a whole, also those of hosts behind few switches on a cycle.
TEST(Drawing, KeepsEverythingOnThePage) {
  for (const char* yaml : {"topology: {kind: jellyfish, switches: 4, hosts_per_switch: 2, degree: 3}",
                           "topology: {kind: jellyfish, switches: 3, hosts_per_switch: 8, degree: 2}",
                           "topology: {kind: jellyfish, switches: 40, hosts_per_switch: 1, degree: 3}",
                           "topology: {kind: torus, sizes: [4, 4]}", "topology: {kind: fat_tree, k: 4}",
                           "topology: {kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}"}) {
    const std::string svg = drawing(yaml);
    const std::string page = svg.substr(svg.find("<svg"), svg.find('>', svg.find("<svg")) - svg.find("<svg"));
    const double width = attribute(page, "width"), height = attribute(page, "height");
    std::size_t boxes = 0;
    for (std::size_t at = svg.find("<rect"); at != std::string::npos;
         at = svg.find("<rect", at + 1), ++boxes) {
      const std::string box = svg.substr(at, svg.find('>', at) - at);
      if (box.find(" x=") == std::string::npos) continue;  // the paper
      EXPECT_GE(attribute(box, "x"), 0) << yaml << box;
      EXPECT_GE(attribute(box, "y"), 0) << yaml << box;
      EXPECT_LE(attribute(box, "x") + attribute(box, "width"), width) << yaml << box;
      EXPECT_LE(attribute(box, "y") + attribute(box, "height"), height) << yaml << box;
    }
    EXPECT_GT(boxes, 8U) << yaml;
  }
}

TEST(Drawing, EscapesNames) {
  const std::string svg = drawing(
      "topology: {kind: custom, switches: ['a<b&c'], links: [{from: host0, to: 'a<b&c'}, {from: host1, to: "
      "'a<b&c'}]}");
  EXPECT_THAT(svg, HasSubstr("a&lt;b&amp;c"));
}

}  // namespace
}  // namespace netsim::drawing_test
