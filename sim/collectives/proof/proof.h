// The proof with its memory limit in the open, for tests. prove(plan, slots) is what everyone else calls.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/plan.h"

namespace netsim {

// `cells`: how many cells (a chunk at a rank) are followed at a time, at least those of one chunk of the
// buffer; at most 8 bytes for each at ranks of one thread block and 24 at others. The verdict on a plan does
// not depend on it, but of several things that are wrong another one may be found first.
std::string prove_within(const Plan& plan, std::uint32_t slots, std::uint64_t cells);

}  // namespace netsim
