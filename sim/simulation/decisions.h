// Writes the decisions made while a simulation was built, and its results, to the log.
#pragma once

#include "sim/core/log.h"
#include "sim/report/results.h"
#include "sim/simulation/simulation.h"

namespace netsim {

// Logs at `info` the selected components, defaults or not, by part of netsim; sets and threads; the sizes of
// the cluster.
void log_decisions(Log& log, const Simulation& simulation);

// Logs at `info` how the run ended, its jobs, the faults of links and hosts with their times, and its Notes.
void log_results(Log& log, const Results& results);

}  // namespace netsim
