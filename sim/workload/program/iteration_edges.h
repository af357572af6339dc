// Connects the iterations of a finished block, so that an iteration begins before the one before it has
// ended.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/program/program.h"

namespace netsim {

// IterationEdge: the operation at `position` of a role's unrolled block waits for the operation at `previous`
// in the previous iteration.
struct IterationEdge {
  BlockBuilder::Position position = 0, previous = 0;
};

// Returns a copy of a role's block with the edges, as ProgramOp::after_previous. A nested block is copied
// only where an edge leads into it; the builder's blocks stay as they are.
//
// An operation that would wait for the whole previous iteration (RoleProgramSource) gets an edge, too. It
// waits for the operation at `last` in that iteration, which is the last computation. So the first receives
// of a pipeline are posted when the rank computes nothing more of the iteration before.
std::uint32_t connect_iterations(ProgramBuilder& builder, std::uint32_t block,
                                 const std::vector<IterationEdge>& edges, BlockBuilder::Position last);

}  // namespace netsim
