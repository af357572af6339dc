// Call and RunPlayer: a call of the program, and the function by which it plays a run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/configuration/load_run.h"
#include "sim/core/errors.h"
#include "sim/core/log.h"
#include "sim/core/plugin_loader.h"
#include "sim/main/options.h"
#include "sim/report/results.h"
#include "sim/report/summary.h"

namespace netsim {

// Call: the call of the program, apart from its options.
struct Call {
  std::string command;
  std::vector<Plugin> plugins;
  Log log;
};

// RunEnded: gets the results of a run while the simulation is still there.
using RunEnded = std::function<void(const Results&, const Manifest&)>;
// RunPlayer: plays a run, writes its files and returns its exit code.
using RunPlayer = std::function<ExitCode(Options, Call&, const RunEnded&)>;

// Returns the configuration, and the run settings of another tool's configuration. The command line overrides
// both.
inline ConfiguredRun read_configuration(const Options& options) {
  return load_run(options.config, {options.assignments, options.workload});
}

}  // namespace netsim
