// The order in which an iteration and the next one need the results of communications. P3 and ByteScheduler
// send by it: parameters of layer l are needed by the forward of layer l.
// Sources: Jayarajan et al., "Priority-based Parameter Propagation", SysML 2019; Peng et al., SOSP 2019.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/scheduling/task/job_profile.h"

namespace netsim {

// Returns, by communication, its place in the order of need: 0 is needed first. Communications with equal
// numbers are needed by the same computation, and are launched in program order.
//
// The key is the program position of the first computation that waits for it, in this iteration or, if none
// does, in the next one. Only computations of the queue with most computations of a rank count
// (JobProfile::in_ordinary_queue). Paths lead through everything else: other ranks, communications, optimizer
// steps and servers' updates. A communication that no computation waits for is last.
std::vector<std::uint32_t> order_of_use(const JobProfile& profile);

}  // namespace netsim
