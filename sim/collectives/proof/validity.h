// What can be told of a plan without executing it.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/plan.h"

namespace netsim::proof {

// Empty, or what is wrong with the numbers of ranks, chunks and thread blocks. Nothing else of a plan may be
// looked at before.
std::string check_shape(const Plan& plan);

// Of all thread blocks of all ranks.
std::uint64_t count_steps(const Plan& plan);

// Empty, or the first step, by rank, thread block and number, that names something that is not there, or
// whose message would not have one sender.
std::string check_steps(const Plan& plan);

}  // namespace netsim::proof
