// The golden scenarios of declared/golden.yaml, as tests in C++ run them. The scenario file has their
// fingerprints; golden_test.cpp and threads_test.cpp compare their runs with each other.
#pragma once

#include <vector>

#include "tests/support/scenario_file.h"
#include "tests/support/shipped_run.h"

namespace netsim::test {

inline const std::vector<ShippedRun>& golden_scenarios() {
  static const std::vector<ShippedRun> all = [] {
    std::vector<ShippedRun> runs;
    for (const DeclaredScenario& scenario :
         read_scenarios(source_directory() + "/tests/scenarios/declared/golden.yaml"))
      runs.push_back(
          {scenario.name, scenario.configuration.path, scenario.workload.path, scenario.assignments});
    return runs;
  }();
  return all;
}

}  // namespace netsim::test
