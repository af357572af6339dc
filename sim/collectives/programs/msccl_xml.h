// MSCCL's programs in XML, as msccl-tools, SCCL's and TACCL's ncclize, TE-CCL and people write them and as
// MSCCL's and RCCL's interpreters run them:
//
//   <algo name ngpus nchannels nchunksperloop proto coll inplace [minBytes maxBytes root]>
//     <gpu id i_chunks o_chunks s_chunks>
//       <tb id send recv chan>
//         <step s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep/>
//
// A thread block of a program is one of the plan, a step a step, nops with their dependency among them, so
// nothing is renumbered. What is not in the format's own description:
//
// - i_chunks and o_chunks are what the collective makes of nchunksperloop, or 0 for a buffer that no step
//   uses. In a `custom` collective both are nchunksperloop, and never the same memory, whatever `inplace`
//   says.
// - The root of a broadcast is the one rank that receives nothing, of a reduce the one that sends nothing,
//   where the attribute `root`, which the writer adds and the interpreters do not know, is not there.
// - <copy i_off o_off> of old files is a copy at the beginning: a thread block of its own, behind the others;
//   nothing where input and output are one memory there.
// - hasdep="0" on a step that others wait for is refused: its interpreter would let them wait forever.
// - What follows </algo> is no part of the program: some tools print more.
#pragma once

#include <string>

#include "sim/collectives/programs/program_plan.h"

namespace netsim {

// A connected program; InputError at the place of what is wrong. `path` stands for the text in messages.
CollectiveProgram read_msccl_xml(std::string text, const std::string& path);

// The text of a connected program. Of a kind that MSCCL has no name for: as `custom`.
std::string write_msccl_xml(const CollectiveProgram& program);

}  // namespace netsim
