// The text of the proof's messages.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/plan.h"
#include "sim/collectives/proof/goal.h"

namespace netsim::proof {

std::string number(std::uint64_t value);
// Returns "rank 2 thread block 0".
std::string place(std::uint32_t rank, std::uint32_t block);
// Returns "rank 2 thread block 0 step 5".
std::string place(std::uint32_t rank, std::uint32_t block, std::uint32_t index);
const char* text(Buffer buffer);
// Returns "chunk 3 of the input" or "chunks 3-5 of the scratch".
std::string text(ChunkAt at, std::uint32_t count);
// Returns "send chunk 3 of the input to rank 1 thread block 0".
std::string text(const Step& step);

}  // namespace netsim::proof
