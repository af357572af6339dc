// The chunks of NCCL's trees (calcCollChunking in src/enqueue.cc). The two trees have a channel each, so one
// pass through such a plan is two channels. Its chunks are at most one of the 8 steps of a connection's
// buffer. They are smaller where few of them would pass through the chain of ranks.
#pragma once

#include <cstdint>

#include "sim/collectives/library/collectives_parameters.h"
#include "sim/collectives/protocol.h"
#include "sim/core/units.h"

namespace netsim {

struct TreeGroup {
  std::uint32_t ranks = 2;
  std::uint32_t domains = 1;
};
// Returns the largest chunk, in bytes, of a channel that carries `channel_bytes`.
Bytes tree_chunk(const ProtocolParameters& parameters, Protocol protocol, Bytes channel_bytes,
                 const TreeGroup& group);

}  // namespace netsim
