// The proof with an explicit memory limit, for tests, and with a listener, for schedules. All other callers
// use prove(plan, slots).
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/plan.h"
#include "sim/collectives/proof/step_listener.h"

namespace netsim {

// Bytes that prove(plan, slots) may use.
inline constexpr std::uint64_t kProofBytes = std::uint64_t{1} << 29;

// `bytes` is about the memory for cells (a chunk at a rank) at a time. A cell takes 4 bytes where
// contributions are added, and 8 where ranks have several thread blocks. It takes 16 where these and their
// steps are too many for 32 bits.
//
// The limit always suffices for one chunk of the buffer at all ranks. The verdict on a plan does not depend
// on it, but another one of several errors may be found first. `listener` receives every step once, up to the
// first error; it may be null.
std::string prove_within(const Plan& plan, std::uint32_t slots, std::uint64_t bytes,
                         proof::StepListener* listener = nullptr);

}  // namespace netsim
