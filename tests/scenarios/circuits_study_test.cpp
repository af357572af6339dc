// Tests the benefit of optical circuits to a job that requests others in each phase of its iteration. It
// follows theory over five orders of magnitude of the time of a change. TopoOpt, NSDI 2023, section 5.7,
// covers 1 us to 10 ms.
#include <gtest/gtest.h>

#include <string>

#include "sim/core/config.h"
#include "sim/simulation/simulation.h"
#include "tests/support/paths.h"

namespace netsim::circuits_study_test {
namespace {

// Eight servers, four ports each: an all-reduce over rings, then all-to-alls of servers that are opposite to
// each other. On the rings these take four hops; circuits across take them in one.
class CircuitsStudy : public ::testing::Test {
 protected:
  static constexpr int kIterations = 3, kChanges = 2 * kIterations - 1;

  static Time time_of(const std::string& reconfiguration, bool asks) {
    const std::string directory = source_directory() + "/configs/circuits/";
    SimulationSetup setup;
    setup.config = load_config(directory + "opposite.yaml");
    overlay_config(setup.config, "network.circuits.reconfiguration=" + reconfiguration);
    // Acknowledgements wait while circuits change; after the default of 67 ms data would be sent again.
    overlay_config(setup.config, "transport.retransmission_timeout=1 s");
    setup.workload = directory + (asks ? "phases_that_ask.yaml" : "phases.yaml");
    const Results results = Simulation(std::move(setup)).run({});
    EXPECT_EQ(results.outcome, Outcome::done);
    EXPECT_EQ(results.network.circuit_changes, asks ? std::uint64_t{kChanges} : 0);
    EXPECT_EQ(results.network.lost + results.network.drops + results.network.no_route, 0u);
    return results.simulated;
  }
};

TEST_F(CircuitsStudy, EveryChangeCostsItsTime) {
  const Time least = time_of("0 s", true);
  for (const Time latency : {kMicrosecond, 10 * kMicrosecond, 100 * kMicrosecond, kMillisecond,
                             10 * kMillisecond, 100 * kMillisecond}) {
    EXPECT_EQ(time_of(format_time(latency), true), least + kChanges * latency);
  }
}

// The benefit is what the direct ways save, less the changes: it ends at the latency where both are equal.
TEST_F(CircuitsStudy, TheBenefitEndsWhereChangesTakeWhatTheySave) {
  const Time standing = time_of("1 ms", false), least = time_of("0 s", true);
  const Time knee = (standing - least) / kChanges;
  ASSERT_GT(knee, 20 * kMicrosecond);
  const auto benefit = [&](Time latency) {
    return standing - time_of(std::to_string(latency) + " ps", true);
  };
  EXPECT_GT(benefit(knee - kNanosecond), 0);
  EXPECT_LT(benefit(knee + kNanosecond), 0);
  EXPECT_GT(benefit(knee / 100), (standing - least) * 9 / 10);
}

}  // namespace
}  // namespace netsim::circuits_study_test
