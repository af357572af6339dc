// Checks of a plan without executing it.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/plan.h"

namespace netsim::proof {

// Returns an empty string, or the error in the numbers of ranks, chunks and thread blocks. It must be called
// before anything else of a plan is used.
std::string check_shape(const Plan& plan);

// Returns the number of steps of all thread blocks of all ranks.
std::uint64_t count_steps(const Plan& plan);

// Returns an empty string, or the first invalid step by rank, thread block and number. It refers to something
// that does not exist, or its message would not have exactly one sender.
std::string check_steps(const Plan& plan);

}  // namespace netsim::proof
