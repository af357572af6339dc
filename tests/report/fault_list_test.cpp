// Tests that faults of links and hosts are told in words with their times, and which iterations they hit.
#include "sim/report/fault_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/report/screen/screen.h"
#include "sim/report/summary.h"
#include "tests/report/fixtures.h"

namespace netsim::fault_list_test {
namespace {

using nlohmann::json;
using test::links_of;
using test::small_graph;
using test::two_rank_results;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

FaultyPart link(const std::string& name, std::vector<FaultEvent> events, std::uint64_t lost = 0) {
  return {FaultyPart::Kind::link, name, std::move(events), lost, {}};
}

TEST(ReportFaults, FaultsOfBothDirectionsAreOneEntryAndOthersAreNot) {
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
  const std::vector<FaultyPart> faults = faulty_links(schedule, graph, links);
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_EQ(faults[1].events.size(), 2U);
  EXPECT_THAT(fault_lines(faults, 4 * kMillisecond),
              ElementsAre("host0/nic0->leaf0: loses 0.1 % of its packets",
                          "leaf0-leaf1: down at 60.0 us, up at 400 us; 7 packets lost",
                          "leaf0->spine0: 25 Gbps from 5.00 ms on (after the end of the run)"));
}

TEST(ReportFaults, LinksWithTheSameFaultsAreOneLine) {
  const FaultEvent down{kMillisecond, FaultEvent::Kind::down, 0, 0};
  EXPECT_THAT(fault_lines({link("a-b", {down}, 1), link("a-c", {down}), link("a-d", {down}, 1)}, kSecond),
              ElementsAre("a-b and 2 other links: down at 1.00 ms; 2 packets lost"));
  Results results = two_rank_results();
  results.faults = {link("a-b", {down})};
  EXPECT_THAT(render_screen(results), HasSubstr("faults\n    - a-b: down at 1.00 ms\n"));
}

// A switch that is down has faults at all its links.
TEST(ReportFaults, LinksOfOneSwitchNameIt) {
  const Graph graph = small_graph();
  FaultSchedule schedule;
  const NodeId node = graph.port(4).node;
  std::size_t links = 0;
  for (PortId port = 0; port < graph.port_count(); ++port) {
    if (graph.port(port).node != node && graph.port(port).peer_node != node) continue;
    schedule.changes.push_back({kMillisecond, port, LinkChange::Kind::down, 0});
    ++links;
  }
  ASSERT_GT(links, 2U);  // two directions of a link
  EXPECT_THAT(fault_lines(faulty_links(schedule, graph, links_of(graph)), kSecond),
              ElementsAre(counted(links / 2, "link") + " of " + graph.node(node).name + ": down at 1.00 ms"));
}

// Two hosts of two GPUs. One of them fails twice, because it is repaired in between.
TEST(ReportFaults, HostsThatFailAreTold) {
  Cluster cluster;
  for (const char* name : {"host0/gpu0", "host0/gpu1", "host1/gpu0", "host1/gpu1"}) {
    Gpu gpu;
    gpu.node = cluster.graph.add_node(NodeKind::gpu, cluster.graph.add_atom(), name);
    gpu.host = static_cast<std::uint32_t>(cluster.gpus.size() / 2);
    cluster.gpus.push_back(gpu);
  }
  const std::vector<FaultyPart> faults =
      faulty_hosts({{1, 20 * kMillisecond}, {0, kSecond}, {1, kMillisecond}}, {{}, {0, 1}}, cluster);
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_THAT(faults[0].jobs, ElementsAre(1U));
  EXPECT_THAT(fault_lines(faults, 500 * kMillisecond),
              ElementsAre("host0: fails at 1.00 s (after the end of the run)",
                          "host1: fails at 1.00 ms, fails at 20.0 ms"));
}

// A link and a host with the same events in words would still be two lines.
TEST(ReportFaults, HostsAndLinksShareNoLine) {
  const FaultEvent failure{kMillisecond, FaultEvent::Kind::failure, 0, 0};
  EXPECT_THAT(fault_lines({{FaultyPart::Kind::host, "host1", {failure}, 0, {}},
                           {FaultyPart::Kind::host, "host4", {failure}, 0, {}},
                           link("a-b", {failure})},
                          kSecond),
              ElementsAre("host1 and 1 other host: fails at 1.00 ms", "a-b: fails at 1.00 ms"));
}

// The iterations of the job run from 0 to 1 ms and from 1 to 4 ms.
TEST(ReportFaults, HitTheIterationsThatRunMeanwhile) {
  using Kind = FaultEvent::Kind;
  Results results = two_rank_results();
  const Time us = kMicrosecond;
  results.faults = {
      link("first", {{200 * us, Kind::down, 0, 0}, {1000 * us, Kind::up, 0, 0}}),
      link("both", {{900 * us, Kind::down, 0, 0}, {1001 * us, Kind::up, 0, 0}}),
      link("second", {{1000 * us, Kind::rate, kGbps, 0}, {2000 * us, Kind::rate, 2 * kGbps, 0}}),
      link("throughout", {{0, Kind::loss, 0, 0.25}}), link("after", {{4000 * us, Kind::down, 0, 0}})};
  const auto hits = [&results] {
    std::vector<std::string> texts;
    for (const FaultSpan& span : fault_spans(results)) {
      texts.push_back(results.faults[span.part].name);
      for (const HitIterations& hit : span.hits)
        texts.back() += " " + std::to_string(hit.first) + "-" + std::to_string(hit.last);
    }
    return texts;
  };
  EXPECT_THAT(hits(),
              ElementsAre("throughout 0-1", "first 0-0", "both 0-1", "second 1-1", "second 1-1", "after"));
  // A job that was stopped has an iteration that did not end.
  JobResult& job = results.jobs[0];
  job.done = false;
  job.iteration_ends.pop_back();
  EXPECT_THAT(hits(),
              ElementsAre("throughout 0-1", "first 0-0", "both 0-1", "second 1-1", "second 1-1", "after"));
  job.begun = false;
  EXPECT_THAT(hits(), ElementsAre("throughout", "first", "both", "second", "second", "after"));
}

TEST(ReportFaults, AFailedHostHitsTheJobsThatLostRanksThere) {
  Results results = two_rank_results();
  results.jobs.push_back(results.jobs[0]);
  results.faults = {
      {FaultyPart::Kind::host, "host1", {{2 * kMillisecond, FaultEvent::Kind::failure, 0, 0}}, 0, {1}}};
  const std::vector<FaultSpan> spans = fault_spans(results);
  ASSERT_EQ(spans.size(), 1U);
  ASSERT_EQ(spans[0].hits.size(), 1U);
  EXPECT_EQ(spans[0].hits[0].job, 1U);
  EXPECT_EQ(spans[0].hits[0].first, 1U);
}

TEST(ReportFaults, AreInTheSummaryWhereThereAreAny) {
  Results results = two_rank_results();
  EXPECT_FALSE(json::parse(summary_json(results)).contains("faults"));
  results.faults = {link(
      "a-b", {{kMillisecond, FaultEvent::Kind::down, 0, 0}, {2 * kMillisecond, FaultEvent::Kind::up, 0, 0}},
      7)};
  EXPECT_EQ(
      json::parse(summary_json(results))["faults"],
      json::parse(R"([{"part": "link", "name": "a-b", "fault": "down", "from_s": 0.001, "until_s": 0.002,
                             "rate_bps": null, "loss": null, "lost_packets": 7,
                             "hits": [{"job": "pair", "first_iteration": 1, "last_iteration": 1}]}])"));
}

}  // namespace
}  // namespace netsim::fault_list_test
