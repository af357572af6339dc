// The proof with its memory limit in the open, for tests, and told as it goes on, for schedules.
// prove(plan, slots) is what everyone else calls.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/plan.h"
#include "sim/collectives/proof/step_listener.h"

namespace netsim {

// What prove(plan, slots) may use.
inline constexpr std::uint64_t kProofBytes = std::uint64_t{1} << 29;

// `bytes`: about what may be used for cells (a chunk at a rank) at a time: 4 for each where contributions are
// added, and 8 where ranks have several thread blocks (16 where these and their steps are too many for 32
// bits); it is always enough for one chunk of the buffer at all ranks. The verdict on a plan does not depend
// on it, but of several things that are wrong another one may be found first.
// `listener`: told of every step once, as far as the proof comes; null: nobody.
std::string prove_within(const Plan& plan, std::uint32_t slots, std::uint64_t bytes,
                         proof::StepListener* listener = nullptr);

}  // namespace netsim
