// Tests that the shipped traffic patterns, flow lists and imported fabrics run from end to end. They have the
// flows and bytes that they state, and the same results every time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/configuration/load_run.h"
#include "sim/core/registry.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"

namespace netsim::traffic_configs_test {
namespace {

struct Case {
  const char* config;
  const char* workload;
  std::uint64_t flows;
  Bytes bytes;  // 0: a matter of the seed
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.config << " " << c.workload; }

Results run_configs(const Case& c, std::uint64_t seed = 1) {
  const std::string configs = source_directory() + "/configs/";
  SimulationSetup setup;
  setup.config = load_config(configs + c.config);
  setup.workload = configs + c.workload;
  setup.seed = seed;
  return Simulation(std::move(setup)).run({});
}

class TrafficConfigs : public ::testing::TestWithParam<Case> {};

TEST_P(TrafficConfigs, Run) {
  const Results results = run_configs(GetParam());
  EXPECT_EQ(results.outcome, Outcome::done);
  EXPECT_EQ(results.network.flows_done, GetParam().flows);
  EXPECT_EQ(results.network.drops, 0u);
  if (GetParam().bytes > 0) {
    EXPECT_EQ(results.network.bytes_delivered, GetParam().bytes);
  }
  const Results again = run_configs(GetParam());
  EXPECT_EQ(again.fingerprints.results, results.fingerprints.results);
  EXPECT_EQ(again.fingerprints.events, results.fingerprints.events);
}

INSTANTIATE_TEST_SUITE_P(
    Shipped, TrafficConfigs,
    ::testing::Values(Case{"traffic/star17.yaml", "traffic/all_to_all.yaml", 17 * 16, 17 * 16 * 100'000},
                      Case{"traffic/star17.yaml", "traffic/ring.yaml", 17 * 8, 17 * 8 * 1'000'000},
                      Case{"traffic/star17.yaml", "traffic/poisson.yaml", 69, 0},
                      Case{"traffic/star17.yaml", "traffic/poisson_inline.yaml", 583, 0},
                      Case{"traffic/star17.yaml", "traffic/flows.yaml", 3, 4'004'000},
                      // Every message of a collective has its credit, of 64 bytes.
                      Case{"traffic/star17.yaml", "traffic/phases.yaml", 7104, 222'000'000 + 7104 * 64},
                      Case{"traffic/star17.yaml", "traffic/flows.csv", 3, 4'004'000},
                      Case{"traffic/custom.yaml", "traffic/flows.csv", 3, 4'004'000},
                      Case{"import/ns3.yaml", "import/ns3/flow.txt", 4, 5'020'000},
                      Case{"import/htsim.yaml", "import/htsim/connections.cm", 7, 1'608'192}));

TEST(TrafficScenarios, AListIsTheSameInYamlAndCsv) {
  const Results yaml = run_configs({"traffic/star17.yaml", "traffic/flows.yaml", 3, 0});
  const Results csv = run_configs({"traffic/star17.yaml", "traffic/flows.csv", 3, 0});
  EXPECT_EQ(yaml.fingerprints.results, csv.fingerprints.results);
  EXPECT_EQ(yaml.fingerprints.events, csv.fingerprints.events);
}

TEST(TrafficScenarios, PoissonTrafficFollowsTheSeed) {
  const Case c{"traffic/star17.yaml", "traffic/poisson.yaml", 0, 0};
  EXPECT_NE(run_configs(c, 1).network.bytes_delivered, run_configs(c, 2).network.bytes_delivered);
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

// The cluster has none, so asking is refused before anything runs, at the place of the name.
TEST(TrafficScenarios, CircuitsAreRefusedWhereThereAreNone) {
  try {
    run_list("kind: phases\nphases:\n  - {compute: 1 us}\n  - {circuits: ring}\n");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("list:4:16: phases.1.circuits: circuits 'ring' are asked for"));
  }
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

TEST(TrafficScenarios, ARunOfNs3IsOneFile) {
  const std::string path = source_directory() + "/configs/import/ns3/config.txt";
  ConfiguredRun run = load_run(path);
  bool known = false;
  for (const ParameterInfo& info : PacketNetwork::transport_parameters())
    known = known || info.name == "framing";
  if (!known) GTEST_SKIP() << "the transport has no framing of ns-3";
  SimulationSetup setup;
  setup.config = std::move(run.config);
  setup.workload = run.workload;
  const Results results = Simulation(std::move(setup)).run({});
  EXPECT_EQ(results.outcome, Outcome::done);
  EXPECT_EQ(results.network.flows_done, 4u);
  EXPECT_EQ(results.network.bytes_delivered, 5'020'000);
}

}  // namespace
}  // namespace netsim::traffic_configs_test
