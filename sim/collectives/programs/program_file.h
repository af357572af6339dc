// Files of programs, of whatever format: MSCCL's XML, the JSON of SCCL, TACCL and TE-CCL, traces of Chakra.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/programs/program_plan.h"

namespace netsim {

// Larger than those of any synthesizer; of other files read_file() refuses to read more.
inline constexpr std::uint64_t kLargestProgram = 256 << 20;

// What the formats' files are good for.
inline constexpr const char* kProgramAdvice =
    "netsim --prove proves it, `collectives: {all_reduce: {kind: msccl, file: ...}}` runs it";

// A connected program by what its text is recognised as. InputError for what is none or is wrong; `path`
// stands for the text in messages, and is where the other ranks' files of a trace are looked for.
CollectiveProgram read_program(std::string text, const std::string& path);

// "all_reduce 'ring' of 8 ranks: 1 channel, 8 thread blocks, 120 steps, 8 chunks, in place, LL128".
std::string describe(const CollectiveProgram& program);

// Why the program does not do what its collective is, "" where it is proved to (prove()).
std::string prove(const CollectiveProgram& program);

}  // namespace netsim
