// Times along the task graph: when each communication can begin, and how much must still happen after it.
// PACE launches by them the communication whose result is needed first (Bao et al., "Preemptive All-reduce
// Scheduling for Expediting Distributed DNN Training", INFOCOM 2020).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/units.h"
#include "sim/scheduling/task/job_profile.h"

namespace netsim {

// CommunicationTimes: the times of one communication if no two communications contend, in ps. The iteration
// begins at 0, and the next one follows it.
struct CommunicationTimes {
  Time ready = 0;     // earliest begin: longest path from the begin of the iteration
  Time duration = 0;  // of the profile
  Time tail = 0;      // longest path from its end to the end of the next iteration
  Time slack = 0;     // how much later it may end without delaying the end of the next iteration
};

// Returns the times of all communications, by index. The next iteration is counted whole. Its backward adds
// the same to every path through its forward, so tails are ordered as if only the forward counted.
std::vector<CommunicationTimes> communication_times(const JobProfile& profile);

// Returns the longest path through one iteration.
Time iteration_length(const JobProfile& profile);

// Returns, by communication, its place in PACE's order: 0 has the longest tail, so its result is needed
// first. On a chain of layers this is the order of the forward.
std::vector<std::uint32_t> order_of_tail(const JobProfile& profile);

}  // namespace netsim
