// Tests that links are grouped by the tiers that they join, and that faults are told in words with their
// times.
#include "sim/report/link_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/report/screen/screen.h"
#include "tests/report/fixtures.h"

namespace netsim::link_groups_test {
namespace {

using test::two_rank_results;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// gpu - nic - leaf (tier 0) - spine (tier 1), and a second leaf beside the first one.
Graph small_graph() {
  Graph graph;
  const AtomId host = graph.add_atom();
  const NodeId gpu = graph.add_node(NodeKind::gpu, host, "host0/gpu0");
  const NodeId nic = graph.add_node(NodeKind::nic, host, "host0/nic0");
  const NodeId leaf = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "leaf0", 0);
  const NodeId other = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "leaf1", 0);
  const NodeId spine = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "spine0", 1);
  const LinkSpec link;
  graph.add_link(gpu, nic, link);
  graph.add_link(nic, leaf, link);
  graph.add_link(leaf, other, link);
  graph.add_link(leaf, spine, link);
  return graph;
}

std::vector<LinkResult> links_of(const Graph& graph) {
  std::vector<LinkResult> links;
  const LinkTiers tiers = link_tiers(graph);
  for (PortId port = 0; port < graph.port_count(); ++port)
    links.push_back({graph.port_name(port), LinkKind::ethernet, 100 * kGbps, {}, tiers.of_port[port]});
  return links;
}

TEST(ReportLinkGroups, TiersRunFromHostsUpward) {
  const LinkTiers tiers = link_tiers(small_graph());
  EXPECT_THAT(tiers.names, ElementsAre("GPU -> NIC", "NIC -> GPU", "hosts -> tier 0", "tier 0 -> hosts",
                                       "within tier 0", "tier 0 -> tier 1", "tier 1 -> tier 0"));
  EXPECT_THAT(tiers.of_port, ElementsAre(0, 1, 2, 3, 4, 4, 5, 6));
}

TEST(ReportLinkGroups, ATierHasTheMeanOfAllItsLinksAndTheFirstOfTheLargest) {
  Results results = two_rank_results();
  results.link_tiers = {"tier 0 -> hosts", "hosts -> tier 0"};
  results.links.clear();
  for (const Bytes queue : {0, 700, 700}) {
    LinkResult link;
    link.name = "leaf0->host" + std::to_string(results.links.size());
    link.rate = 100 * kGbps;
    link.counters.wire_bytes = 10;
    link.counters.busy = queue > 0 ? kMillisecond : 0;  // a quarter of the run
    link.counters.max_queue = queue;
    link.counters.ecn_marks = 2;
    results.links.push_back(link);
  }
  results.links.push_back({"host0->leaf0", LinkKind::ethernet, 100 * kGbps, {}, 1});  // carried nothing
  const std::vector<TierOfLinks> tiers = tiers_of_links(results);
  ASSERT_EQ(tiers.size(), 1U);
  EXPECT_EQ(tiers[0].links, 3U);
  EXPECT_DOUBLE_EQ(tiers[0].mean_utilisation, 0.5 / 3);
  EXPECT_DOUBLE_EQ(tiers[0].most_utilisation, 0.25);
  EXPECT_EQ(tiers[0].busiest, 1U);
  EXPECT_EQ(tiers[0].longest_queue, 1U);
  EXPECT_EQ(tiers[0].sum.ecn_marks, 6U);
  EXPECT_EQ(tiers[0].sum.max_queue, 700);
  const std::string screen = render_screen(results, 100);
  EXPECT_THAT(screen, HasSubstr("links by tier"));
  EXPECT_THAT(screen, HasSubstr("tier 0 -> hosts"));
  EXPECT_THAT(screen, HasSubstr("leaf0->host1"));
  EXPECT_EQ(screen.find("hosts -> tier 0"), std::string::npos);
}

TEST(ReportLinkGroups, FaultsOfBothDirectionsAreOneEntryAndOthersAreNot) {
  const Graph graph = small_graph();
  std::vector<LinkResult> links = links_of(graph);
  links[4].counters.lost = 3;
  links[5].counters.lost = 4;
  using Kind = LinkChange::Kind;
  FaultSchedule schedule;
  schedule.losses.push_back({2, 0.001});
  for (const PortId port : {4U, 5U}) {
    schedule.changes.push_back({60 * kMicrosecond, port, Kind::down, 0});
    schedule.changes.push_back({110 * kMicrosecond, port, Kind::detected, 0});
    schedule.changes.push_back({400 * kMicrosecond, port, Kind::up, 0});
  }
  schedule.changes.push_back({5 * kMillisecond, 6, Kind::rate, 25 * kGbps});
  const std::vector<FaultyLink> faults = faulty_links(schedule, graph, links);
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_EQ(faults[1].events.size(), 2U);
  EXPECT_THAT(fault_lines(faults, 4 * kMillisecond),
              ElementsAre("host0/nic0->leaf0: loses 0.1 % of its packets",
                          "leaf0-leaf1: down at 60.0 us, up at 400 us; 7 packets lost",
                          "leaf0->spine0: 25 Gbps from 5.00 ms on (after the end of the run)"));
}

TEST(ReportLinkGroups, LinksWithTheSameFaultsAreOneLine) {
  const FaultEvent down{kMillisecond, FaultEvent::Kind::down, 0, 0};
  EXPECT_THAT(fault_lines({{"a-b", {down}, 1}, {"a-c", {down}, 0}, {"a-d", {down}, 1}}, kSecond),
              ElementsAre("a-b and 2 other links: down at 1.00 ms; 2 packets lost"));
  Results results = two_rank_results();
  results.faults = {{"a-b", {down}, 0}};
  EXPECT_THAT(render_screen(results), HasSubstr("faults\n    - a-b: down at 1.00 ms\n"));
}

// A job that can never run is no job that is done.
TEST(ReportScreen, CountsJobsByStateWhereNotAllAreDone) {
  Results results = two_rank_results();
  results.jobs.push_back(test::two_rank_job());
  EXPECT_THAT(render_screen(results), HasSubstr("2 jobs: done\n"));
  results.jobs[1].done = false;
  results.jobs[1].never_fits = "it needs 64 GPUs";
  EXPECT_THAT(render_screen(results), HasSubstr("2 jobs: 1 done, 1 never fits\n"));
  results.outcome = Outcome::limit;
  EXPECT_THAT(render_screen(results), HasSubstr("2 jobs: limit reached, 1 done, 1 never fits\n"));
}

}  // namespace
}  // namespace netsim::link_groups_test
