// The words of the proof's messages.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/schedule.h"

namespace netsim::proof {

std::string number(std::uint64_t value);
// "rank 2 thread block 0 instruction 5"
std::string place(std::uint32_t rank, std::uint32_t thread_block, std::uint32_t index);
// "send chunk 3 to rank 1"
std::string text(const Instruction& instruction);

}  // namespace netsim::proof
