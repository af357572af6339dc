// Double binary tree (Sanders, Speck, Traeff, Parallel Computing 2009), built as NCCL builds it
// (src/graph/trees.cc, ncclGetBtree and ncclGetDtree): half of the buffer is reduced to the root of each of
// two trees and broadcast from there. A rank is a leaf in one tree where it is interior in the other, so that
// over both trees it has at most two children and sends at most 2n bytes, in about 2 log2(p) steps.
//
// Tree 0: position i = rank; with b the lowest set bit of i, the parent of i is (i ^ b) | 2b, or i ^ b where
// that is beyond the end; position 0 is the root with one child. Subtrees are contiguous ranges of positions.
// Tree 1 is the mirror image (position p-1-rank) for even p and the shift by one (position rank-1) for odd p.
// (For odd p, rank 0 is the root of tree 0, with one child, and also has the only one-child position of tree
// 1 with a parent.)
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/tree_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

// The first child position to the right of `position` that exists, for a subtree of height `bit`.
std::uint32_t right_child(std::uint32_t ranks, std::uint32_t position, std::uint32_t bit) {
  for (std::uint32_t step = bit >> 1; step != 0; step >>= 1) {
    if (position + step < ranks) return position + step;
  }
  return kNoIndex;
}

// Children in NCCL's order.
TreeNode node_at(std::uint32_t ranks, std::uint32_t position) {
  TreeNode node;
  std::uint32_t bit = 1;
  while (bit < ranks && (bit & position) == 0) bit <<= 1;
  if (position == 0) {
    node.add_child(bit >> 1);
    return node;
  }
  const std::uint32_t below = position ^ bit, above = below | (bit << 1);
  node.parent = above < ranks ? above : below;
  if (bit > 1) node.add_child(position - (bit >> 1));
  if (const std::uint32_t right = right_child(ranks, position, bit); right != kNoIndex) node.add_child(right);
  return node;
}

class DoubleBinaryTreePlan final : public TreePlan {
 public:
  explicit DoubleBinaryTreePlan(std::uint32_t ranks)
      : TreePlan("double_binary_tree", CollectiveKind::all_reduce, ranks, 0,
                 {.trees = 2, .last_child_first = false}) {}

 private:
  TreeNode node(std::uint32_t rank, std::uint32_t tree) const override {
    if (tree == 0) return node_at(ranks_, rank);
    TreeNode node = node_at(ranks_, position_in_second(rank));
    if (!node.is_root()) node.parent = rank_in_second(node.parent);
    for (std::uint32_t i = 0; i < node.child_count; ++i) node.children[i] = rank_in_second(node.children[i]);
    return node;
  }
  std::uint32_t position_in_second(std::uint32_t rank) const {
    return ranks_ % 2 == 0 ? ranks_ - 1 - rank : (rank + ranks_ - 1) % ranks_;
  }
  std::uint32_t rank_in_second(std::uint32_t position) const {
    return ranks_ % 2 == 0 ? ranks_ - 1 - position : (position + 1) % ranks_;
  }
};

class DoubleBinaryTree final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  CostFamily cost_family() const override { return CostFamily::tree; }
  std::unique_ptr<Plan> plan(CollectiveKind, std::uint32_t ranks, std::uint32_t) const override {
    return std::make_unique<DoubleBinaryTreePlan>(ranks);
  }
};

const Registration<CollectiveAlgorithm> kRegistration{
    "double_binary_tree",
    "all-reduce over two complementary binary trees: about 2 log2(p) steps; for small buffers on many ranks",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<DoubleBinaryTree>(); }};

}  // namespace
}  // namespace netsim
