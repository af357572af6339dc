// Does every shipped topology deliver a permutation across its middle, from end to end?
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/core/output.h"
#include "sim/report/drawing.h"
#include "sim/simulation/simulation.h"
#include "sim/topology/topology.h"
#include "tests/report/picture_check.h"
#include "tests/support/paths.h"

namespace netsim::topology_configs_test {
namespace {

constexpr Bytes kMessage = 1'000'000;  // configs/topologies/shift.yaml

std::vector<std::string> shipped_topologies() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(source_directory() + "/configs/topologies")) {
    const bool cluster = file.path().extension() == ".yaml" && file.path().stem() != "shift";
    if (cluster) names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class TopologyConfigs : public ::testing::TestWithParam<std::string> {};

TEST_P(TopologyConfigs, DeliversAPermutation) {
  const std::string directory = source_directory() + "/configs/topologies/";
  SimulationSetup setup;
  setup.config = load_config(directory + GetParam() + ".yaml");
  setup.workload = directory + "shift.yaml";
  const Results results = Simulation(std::move(setup)).run({});
  EXPECT_EQ(results.outcome, Outcome::done);
  EXPECT_GT(results.network.flows_done, 1u);
  EXPECT_EQ(results.network.bytes_delivered, static_cast<Bytes>(results.network.flows_done) * kMessage);
}

// scripts/pictures.sh draws them again. No line crosses a name, and nothing is cut off.
TEST_P(TopologyConfigs, IsDrawnInTheDocumentation) {
  const Cluster cluster =
      build_cluster(load_config(source_directory() + "/configs/topologies/" + GetParam() + ".yaml"));
  const std::string svg = draw_cluster(cluster);
  EXPECT_EQ(svg, read_file(source_directory() + "/docs/pictures/" + GetParam() + ".svg"));
  EXPECT_EQ(test::faults_of(svg), "");
}

INSTANTIATE_TEST_SUITE_P(Shipped, TopologyConfigs, ::testing::ValuesIn(shipped_topologies()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace netsim::topology_configs_test
