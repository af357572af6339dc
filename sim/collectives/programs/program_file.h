// Files of programs in all formats: MSCCL's XML, the JSON of SCCL, TACCL and TE-CCL, and traces of Chakra.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/programs/program_plan.h"

namespace netsim {

// Largest file size in bytes. It is larger than the files of any synthesizer; read_file() refuses larger
// ones.
inline constexpr std::uint64_t kLargestProgram = 256 << 20;

// Advice in messages about such files.
inline constexpr const char* kProgramAdvice =
    "netsim --prove proves it, `collectives: {all_reduce: {kind: msccl, file: ...}}` runs it";

// Returns a connected program in the format that its text shows. `path` names the text in messages; the other
// ranks' files of a trace are in the same folder. Throws InputError for an unknown format or an error.
CollectiveProgram read_program(std::string text, const std::string& path);

// Returns "all_reduce 'ring' of 8 ranks: 1 channel, 8 thread blocks, 120 steps, 8 chunks, in place, LL128".
std::string describe(const CollectiveProgram& program);

// Returns why the program does not implement its collective; "" where it is proved to (prove()).
std::string prove(const CollectiveProgram& program);

}  // namespace netsim
