// Reads a collective's algorithm from Chakra execution traces, which ASTRA-sim runs as a custom collective.
// Each rank has a file NAME.R.et with sends, receives and compute nodes that wait for each other.
//
// A send and a receive of the same two ranks and tag form a connection. Its n-th message sent is its n-th
// received. Each end is a thread block, and tags are channels. A step waits for the nodes that its node
// names, data or control.
//
// A compute node that waits for a receive is its reduction and forms one step with it. One without a receive
// only joins what waits. The ready node with the smallest id comes first.
//
// The chunk that a message carries is found in one of two ways:
//
// - All sends and receives may have msg_chunk_idx, msg_chunk_cnt and total_chunk_cnt. ASTRA-sim's converter
//   of MSCCL programs writes them since it takes sizes from the collective. They give chunks of the vector of
//   an all-reduce, of the output of an all-gather, or of the input of a reduce-scatter. chunk_offset has
//   precedence over msg_chunk_idx. In an all-to-all, sends use the input and receives the output.
// - Otherwise there is only comm_size, and no trace names the chunk. Each message is then one chunk, and all
//   have one size. A send whose data_deps lead to one receive passes on its data. A send that depends on
//   several receives, which are all reduced, passes on their sum. A send without a receive sends the rank's
//   own data.
//
// In an all-gather and a broadcast the i-th such send to a rank is chunk i of the sender. In other kinds each
// is a chunk of its own. Where that cannot be proved, each is the whole vector (all-reduce, reduce) or the
// part that its last receiver owns (reduce-scatter).
//
// A trace is read as the first of these interpretations that is proved: a correct algorithm that sends the
// same messages in the same order. If none can be proved, the proof gives the reason.
//
// The collective is `collective` of the first record, or `coll` of the MSCCL program that a converter put
// there. Without both, it is the first kind that is proved.
#pragma once

#include <string>

#include "sim/collectives/programs/program_plan.h"

namespace netsim {

// Returns a connected program. `text` is the content of the file `path`, whose name is NAME.R.et. The files
// of the other ranks are read from the same folder. Throws InputError with the file, the rank and the node.
CollectiveProgram read_chakra_et(std::string text, const std::string& path);

}  // namespace netsim
