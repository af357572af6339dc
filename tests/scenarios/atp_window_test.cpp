// Does a worker of ATP keep its window by the ECN marks of a run? A flow to the parameter server fills the
// queue that the sums wait in. Their marks come back with the results, and all workers halve their windows.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"

namespace netsim::atp_window_test {
namespace {

// A result takes 8.1 us, four links of 2 us and 24,640 ps each. In that time a link could carry 329 packets
// of 308 B, so the window of 100 packets is what limits a worker.
constexpr Time kDelay = 2 * kMicrosecond, kRoundTrip = 4 * (kDelay + 24'640);
constexpr Time kFlowBegins = 100 * kMicrosecond;
constexpr int kWindow = 100;
constexpr int kIncrease = 1500 / 308;  // packets that a window grows by, after each window of results

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

PortId port_between(const Graph& graph, const std::string& name) {
  for (PortId id = 0; id < graph.port_count(); ++id) {
    if (graph.port_name(id) == name) return id;
  }
  ADD_FAILURE() << "no port " << name;
  return 0;
}

// Returns the packets that worker host1 has in flight, each microsecond up to `end`. Hosts 0 to 4 add up, and
// from 100 us on host 5 sends a flow to the parameter server, host 0.
std::vector<int> in_flight(const std::string& marker, Time end) {
  const test::Directory directory;
  write(directory.path() + "/sum.csv", "rank,host,gpu\n0,0,0\n1,1,0\n2,2,0\n3,3,0\n4,4,0\n");
  write(directory.path() + "/flow.csv", "rank,host,gpu\n0,0,0\n1,5,0\n");
  SimulationSetup setup;
  setup.workload = directory.path() + "/jobs.yaml";
  write(setup.workload.text(),
        "jobs:\n"
        "  - name: sum\n"
        "    placement: {kind: file, file: sum.csv, share: true}\n"
        "    workload: {kind: collective, collective: all_reduce, bytes: 3 MB, ranks: 5}\n"
        "  - name: other\n"
        "    arrival: 100 us\n"
        "    placement: {kind: file, file: flow.csv, share: true}\n"
        "    workload: {kind: flows, ranks: 2, flows: [{from: 1, to: 0, bytes: 600 KB}]}\n");
  setup.config = parse_config(
      "topology: {kind: star, hosts: 6, rate: 100 Gbps, delay: 2 us, overhead: 0}\n"
      "host: single_nic\n"
      "network: {switch: {aggregation: true, aggregators: 20000, marker: " +
          marker +
          "}}\n"
          "transport: {congestion_control: none, mtu: 4096 B, window: 128 KB}\n"
          "collectives: {all_reduce: {kind: atp}}\n",
      "atp.yaml");
  Simulation simulation(std::move(setup));
  const Graph& graph = simulation.cluster().graph;
  const PortId up = port_between(graph, "host1->switch0"), down = port_between(graph, "switch0->host1");
  const auto sent = [&](PortId port) {
    return static_cast<int>(simulation.system().packets()->port_counters(port).data_packets);
  };
  simulation.begin();
  std::vector<int> in_flight, results{0, 0};  // those on the link down are in flight, too
  for (Time at = kMicrosecond; at <= end; at += kMicrosecond) {
    while (simulation.step(at)) {
    }
    results.push_back(sent(down));
    in_flight.push_back(sent(up) - results[results.size() - 3]);
  }
  return in_flight;
}

bool near(int value, int expected) { return value >= expected - 2 && value <= expected + 2; }

TEST(AtpWindow, HalvesByMarksAndRecovers) {
  const std::vector<int> packets = in_flight("{kind: step, threshold: 20 KB}", 600 * kMicrosecond);
  const auto flow = packets.begin() + kFlowBegins / kMicrosecond;
  for (auto at = packets.begin() + 20; at != flow; ++at) EXPECT_TRUE(near(*at, kWindow)) << *at;
  const auto lowest = std::min_element(flow, packets.end());
  EXPECT_LT(lowest - flow, 100);
  bool halved = false;
  for (int window = kWindow / 2; window > 0; window /= 2) halved = halved || near(*lowest, window);
  EXPECT_TRUE(halved) << *lowest;
  EXPECT_LE(*lowest, kWindow / 2 + 2);
  // The window rises by the same number of packets after each window of results, which take a round trip.
  constexpr int kStep = kRoundTrip / kMicrosecond + 1;
  for (auto at = lowest; packets.end() - at > kStep; ++at) {
    EXPECT_GE(at[kStep], at[0] - 2);
    EXPECT_LE(at[kStep], at[0] + 2 * kIncrease + 2);
  }
  const auto back = std::find_if(lowest, packets.end(), [](int value) { return near(value, kWindow); });
  ASSERT_NE(back, packets.end());
  const auto begins = std::find_if(lowest, packets.end(), [&](int value) { return value > *lowest + 2; });
  const int rises = (kWindow - *lowest) / kIncrease;
  const std::int64_t risen_us = rises * kRoundTrip / kMicrosecond;
  EXPECT_NEAR(static_cast<double>(back - begins), static_cast<double>(risen_us), 20);
}

TEST(AtpWindow, StaysWithoutMarks) {
  const std::vector<int> packets = in_flight("none", 600 * kMicrosecond);
  for (std::size_t at = 20; at < packets.size(); ++at) EXPECT_TRUE(near(packets[at], kWindow)) << at;
}

}  // namespace
}  // namespace netsim::atp_window_test
