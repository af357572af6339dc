// What was decided for a simulation when it was built: for its log.
#pragma once

#include "sim/core/log.h"
#include "sim/report/results.h"
#include "sim/simulation.h"

namespace netsim {

// At `info`: the components that were chosen, defaults or not, room by room; sets and threads; the sizes of
// the cluster.
void log_decisions(Log& log, const Simulation& simulation);

// At `info`: how the run ended, its jobs, and its Notes.
void log_results(Log& log, const Results& results);

}  // namespace netsim
