// A run of files that are shipped, in the process of the test.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/simulation/simulation.h"
#include "tests/support/paths.h"

namespace netsim::test {

struct ShippedRun {
  std::string name = {};                   // for messages
  std::string config, workload;            // absolute, or below configs/
  std::vector<std::string> overlays = {};  // assignments as for --set
};

// Returns the absolute path of a file below configs/; an absolute path stays.
inline std::string below_configs(const std::string& path) {
  return path[0] == '/' ? path : source_directory() + "/configs/" + path;
}

inline SimulationSetup setup_of(const ShippedRun& run, std::uint64_t seed = 1) {
  SimulationSetup setup;
  setup.config = load_config(below_configs(run.config));
  for (const std::string& overlay : run.overlays) overlay_config(setup.config, overlay);
  setup.workload = below_configs(run.workload);
  setup.seed = seed;
  return setup;
}

// Runs to the end.
inline Results run_of(const ShippedRun& run, std::uint64_t seed = 1) {
  return Simulation(setup_of(run, seed)).run({});
}

}  // namespace netsim::test
