// Does the twist of a torus speed up a uniform all-to-all, packet by packet, by what TPU v4's paper measured?
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"

namespace netsim::twisted_torus_test {
namespace {

// Every chip sends 16 KiB to every other at once, and packets take any shortest path.
// docs/evidence/validation.md has the results with 64 KiB and credits.
Time all_to_all(const std::string& sizes, bool twist) {
  const test::Directory directory;
  std::ofstream(directory.path() + "/all.yaml") << "kind: all_to_all\nbytes: 16 KiB\n";
  SimulationSetup setup;
  setup.config = load_config(source_directory() + "/configs/topologies/torus.yaml");
  overlay_config(setup.config, "topology.sizes=" + sizes);
  overlay_config(setup.config, std::string("topology.twist=") + (twist ? "true" : "false"));
  setup.workload = directory.path() + "/all.yaml";
  const Results results = Simulation(std::move(setup)).run({});
  EXPECT_EQ(results.outcome, Outcome::done);
  return results.simulated;
}

double gain(const std::string& sizes) {
  return static_cast<double>(all_to_all(sizes, false)) / static_cast<double>(all_to_all(sizes, true));
}

// Jouppi et al., TPU v4, ISCA 2023, section 2.8: 1.63 on 4 x 4 x 8 and 1.31 on 4 x 8 x 8. By the busiest link
// it is 128 / 73.3 = 1.75 and 256 / 184 = 1.39.
TEST(TwistedTorusTraffic, GainsOnAllToAllOf128Chips) {
  const double found = gain("[4, 4, 8]");
  EXPECT_GE(found, 1.5);
  EXPECT_LE(found, 1.75);
}

TEST(LongTwistedTorusTraffic, GainsOnAllToAllOf256Chips) {
  const double found = gain("[4, 8, 8]");
  EXPECT_GE(found, 1.25);
  EXPECT_LE(found, 1.4);
}

}  // namespace
}  // namespace netsim::twisted_torus_test
