// MSCCL's programs in XML. msccl-tools, SCCL's and TACCL's ncclize, TE-CCL and people write them; MSCCL's and
// RCCL's interpreters run them:
//
//   <algo name ngpus nchannels nchunksperloop proto coll inplace [minBytes maxBytes root]>
//     <gpu id i_chunks o_chunks s_chunks>
//       <tb id send recv chan>
//         <step s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep/>
//
// A thread block of a program is a thread block of the plan, and a step is a step, also a nop with its
// dependency. So nothing is renumbered. The format's own description omits the following:
//
// - i_chunks and o_chunks follow from the collective and nchunksperloop, or are 0 for a buffer that no step
//   uses. In a `custom` collective both are nchunksperloop, and never the same memory, whatever `inplace`
//   says.
// - The attribute `root` is written by netsim and unknown to the interpreters. Without it, the root of a
//   broadcast is the one rank that receives nothing, and that of a reduce the one that sends nothing.
// - <copy i_off o_off> of old files is a copy at the beginning. It gets its own thread block after the
//   others. It does nothing where input and output are one memory.
// - hasdep="0" on a step that others wait for is refused: its interpreter would let them wait forever.
// - Text after </algo> is not part of the program: some tools print more.
#pragma once

#include <string>

#include "sim/collectives/programs/program_plan.h"

namespace netsim {

// Returns a connected program. Throws InputError at the place of an error. `path` names the text in messages.
CollectiveProgram read_msccl_xml(std::string text, const std::string& path);

// Returns the XML text of a connected program. A kind that MSCCL has no name for becomes `custom`.
std::string write_msccl_xml(const CollectiveProgram& program);

}  // namespace netsim
