// Runs a workload in a number of sets and threads, for tests that compare such runs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>

#include "sim/core/config.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"

namespace netsim::test {

// `configuration` is YAML without the section `engine`. The run must end as done.
inline Results run_in_sets(const std::string& configuration, const std::string& workload,
                           std::uint32_t sets = 1, std::uint32_t threads = 1, std::uint64_t seed = 1) {
  const Directory directory;
  SimulationSetup setup;
  setup.workload = directory.path() + "/workload.yaml";
  std::ofstream(setup.workload.text()) << workload;
  setup.config =
      parse_config(configuration + "engine: {sets: " + std::to_string(sets) + "}\n", "configuration.yaml");
  setup.threads = threads;
  setup.seed = seed;
  Results results = Simulation(std::move(setup)).run({});
  EXPECT_EQ(results.outcome, Outcome::done) << configuration;
  return results;
}

// Expects the same flows and the same decisions about them.
inline void expect_same_flows(const Results& a, const Results& b, const std::string& what) {
  EXPECT_EQ(a.fingerprints.results, b.fingerprints.results) << what;
  EXPECT_EQ(a.fingerprints.packets, b.fingerprints.packets) << what;
  EXPECT_EQ(a.flow_scheduling.decisions, b.flow_scheduling.decisions) << what;
  EXPECT_EQ(a.flow_scheduling.intervals, b.flow_scheduling.intervals) << what;
  EXPECT_EQ(a.flow_scheduling.held_time, b.flow_scheduling.held_time) << what;
}

}  // namespace netsim::test
