// A collective's algorithm as Chakra execution traces say it, which ASTRA-sim runs as a custom collective: of
// each rank a file NAME.R.et with sends, receives and compute nodes that wait for each other.
//
// A send and a receive of the same two ranks and tag are a connection, on which the n-th message that is sent
// is the n-th that is received; at each end it is a thread block of its own, and tags are channels. A step
// waits for the nodes that its node names, data or control. A compute node that waits for a receive is its
// reduction, and one step with it; one without a receive does nothing but join what waits. Of ready nodes
// the one with the smallest id comes first.
//
// Which chunk a message carries:
//
// - Where all sends and receives have msg_chunk_idx, msg_chunk_cnt and total_chunk_cnt (ASTRA-sim's
//   converter of MSCCL programs since it takes sizes from the collective), these say it: chunks of the vector
//   of an all-reduce, of the output of an all-gather, of the input of a reduce-scatter. chunk_offset goes
//   before msg_chunk_idx. Of an all-to-all, sends are of the input and receives of the output.
// - Else there is comm_size only, and no trace says it. Messages are then one chunk each, of one size. A send
//   whose data_deps lead to one receive passes on what came there, one to several that are all reduced the
//   sum of them, one to none what its rank had: for an all-gather and a broadcast the i-th such send to a
//   rank is chunk i of the sender's; for the others each is a chunk of its own, or, where that cannot be
//   proved, the whole vector (all-reduce, reduce) or what its last receiver owns (reduce-scatter). So a trace
//   is read as the first of these that is proved: a right algorithm that sends the same messages behind each
//   other. Of one that cannot be proved the proof says why.
//
// The collective is `collective` of the first record, or `coll` of the MSCCL program that a converter put
// there; where neither is there, the first one that is proved.
#pragma once

#include <string>

#include "sim/collectives/programs/program_plan.h"

namespace netsim {

// A connected program; `text` is what the file `path` holds, which is called NAME.R.et. The files of the
// other ranks are read from beside it. InputError with the file, the rank and the node for what is wrong.
CollectiveProgram read_chakra_et(std::string text, const std::string& path);

}  // namespace netsim
