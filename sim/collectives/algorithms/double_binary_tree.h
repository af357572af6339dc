// The two trees of a double binary tree (Sanders, Speck, Traeff, Parallel Computing 2009) over members 0 ..
// count - 1. NCCL builds the same trees (src/graph/trees.cc, ncclGetBtree and ncclGetDtree). A member is a
// leaf in one tree where it is interior in the other.
//
// In tree 0 the position i of a member is its number. With b the lowest set bit of i, its parent is (i ^ b) |
// 2b, or i ^ b where that is beyond the end. Position 0 is the root and has one child. Subtrees are
// contiguous ranges of positions.
//
// Tree 1 is the mirror image (position count-1-member) for even counts. For odd counts it is the shift by one
// (position member-1). Then member 0 is the root of tree 0, with one child. It also has the only one-child
// position of tree 1 with a parent.
#pragma once

#include <cstdint>

#include "sim/collectives/algorithms/tree_plan.h"

namespace netsim {

// Returns a member's node in tree 0 or 1. Children are in NCCL's order: below, then above the member's
// position.
TreeNode double_binary_node(std::uint32_t count, std::uint32_t member, std::uint32_t tree);

}  // namespace netsim
