// Compares runs of traffic patterns and flow lists with each other. declared/traffic.yaml has those that are
// shipped, with their flows and bytes.
#include <gtest/gtest.h>

#include <string>

#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/shipped_run.h"

namespace netsim::traffic_configs_test {
namespace {

TEST(TrafficScenarios, AListIsTheSameInYamlAndCsv) {
  const Results yaml = test::run_of({.config = "traffic/star17.yaml", .workload = "traffic/flows.yaml"});
  const Results csv = test::run_of({.config = "traffic/star17.yaml", .workload = "traffic/flows.csv"});
  EXPECT_EQ(yaml.fingerprints.results, csv.fingerprints.results);
  EXPECT_EQ(yaml.fingerprints.events, csv.fingerprints.events);
}

TEST(TrafficScenarios, PoissonTrafficFollowsTheSeed) {
  const test::ShippedRun poisson{.config = "traffic/star17.yaml", .workload = "traffic/poisson.yaml"};
  EXPECT_NE(test::run_of(poisson, 1).network.bytes_delivered,
            test::run_of(poisson, 2).network.bytes_delivered);
}

// A workload in a file of its own on a star of 100 Gb/s and 1 us, packets of 1000 B.
Results run_list(const std::string& list, const std::string& more = "") {
  const test::Directory directory;
  std::ofstream(directory.path() + "/list") << list;
  SimulationSetup setup;
  setup.config = parse_config(
      "topology: {kind: star, hosts: 4, overhead: 0}\nhost: single_nic\n"
      "transport: {mtu: 1000 B, congestion_control: none" +
          more + "}\n",
      "test.yaml");
  setup.workload = directory.path() + "/list";
  return Simulation(std::move(setup)).run({});
}

TEST(TrafficScenarios, FlowsStartAtTheirTime) {
  const Results results =
      run_list("source,destination,bytes,start\n0,1,1000,0\n2,3,1000,1 ms\n0,2,1000,30 us\n");
  ASSERT_EQ(results.outcome, Outcome::done);
  // Each alone in an idle network takes the same time: the last one ends that much after its start.
  EXPECT_EQ(results.simulated - kMillisecond, results.flows.maximum);
  EXPECT_EQ(static_cast<double>(results.flows.maximum), results.flows.mean);
}

TEST(TrafficScenarios, ATriggeredConnectionStartsWithTheAcknowledgementOfTheOneBefore) {
  const std::string head =
      "Nodes 4\nConnections 2\nTriggers 1\n0->1 start 0 size 1000000 send_done_trigger 1\n";
  const Results chain = run_list(head + "0->2 trigger 1 size 1000000\ntrigger id 1 oneshot\n");
  const Results alone = run_list("Nodes 4\nConnections 1\n0->1 start 0 size 1000000\n");
  ASSERT_EQ(chain.outcome, Outcome::done);
  // Twice the time of one, and its acknowledgement's way of two links of 1 us in between.
  EXPECT_GE(chain.simulated, 2 * alone.simulated + 2 * kMicrosecond);
  EXPECT_LE(chain.simulated, 2 * alone.simulated + 2 * kMicrosecond + 100 * kNanosecond);
}

TEST(TrafficScenarios, FlowsOfOnePairShareItsLinkAtOnce) {
  // On a queue pair of its own, the small flow does not wait for the large one.
  const std::string large = "source,destination,bytes,start,channel\n0,1,10 MB,0,0\n";
  const Results own = run_list(large + "0,1,1000,1 us,1\n");
  const Results shared = run_list(large + "0,1,1000,1 us,0\n");
  EXPECT_LT(own.flows.p50, 10 * kMicrosecond);
  EXPECT_GT(shared.flows.p50, 700 * kMicrosecond);
}

}  // namespace
}  // namespace netsim::traffic_configs_test
