// The proof with its memory limit in the open, for tests. prove(schedule) is what everyone else calls.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/schedule.h"

namespace netsim {

// `cells`: how many (rank, chunk) cells of 8 bytes are followed at a time (at least one chunk's). The verdict
// on a right schedule does not depend on it; of a wrong one, another error may be found first.
std::string prove_within(const Schedule& schedule, std::uint64_t cells);

}  // namespace netsim
