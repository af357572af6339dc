// The two trees of a double binary tree (Sanders, Speck, Traeff, Parallel Computing 2009), as NCCL builds
// them (src/graph/trees.cc, ncclGetBtree and ncclGetDtree), over members 0 .. count - 1. A member is a leaf
// in one tree where it is interior in the other.
//
// Tree 0: position i = member; with b the lowest set bit of i, the parent of i is (i ^ b) | 2b, or i ^ b
// where that is beyond the end; position 0 is the root with one child. Subtrees are contiguous ranges of
// positions. Tree 1 is the mirror image (position count-1-member) for even counts and the shift by one
// (position member-1) for odd ones. (For an odd count, member 0 is the root of tree 0, with one child, and
// also has the only one-child position of tree 1 with a parent.)
#pragma once

#include <cstdint>

#include "sim/collectives/algorithms/tree_plan.h"

namespace netsim {

// Of tree 0 or 1; children in NCCL's order: below, then above the member's position.
TreeNode double_binary_node(std::uint32_t count, std::uint32_t member, std::uint32_t tree);

}  // namespace netsim
