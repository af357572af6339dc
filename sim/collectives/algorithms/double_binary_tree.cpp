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
//
// Thread blocks: 2t reduces up tree t, 2t+1 broadcasts down tree t; both work on chunk t. At the root, which
// has one child, the sum goes from the one that reduces straight down. Elsewhere the one that broadcasts
// waits for the rank's one that reduces: it costs nothing, because what comes down contains what the rank has
// sent up, but it makes the order of the two provable at the rank.
#include <algorithm>

#include "sim/collectives/algorithm.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr std::uint32_t kNobody = UINT32_MAX;

struct TreeNode {
  std::uint32_t parent = kNobody;
  std::uint32_t children[2] = {kNobody, kNobody};  // in NCCL's order, filled from the front
  std::uint32_t child_count = 0;

  void add_child(std::uint32_t child) { children[child_count++] = child; }
};

// The first child position to the right of `position` that exists, for a subtree of height `bit`.
std::uint32_t right_child(std::uint32_t ranks, std::uint32_t position, std::uint32_t bit) {
  for (std::uint32_t step = bit >> 1; step != 0; step >>= 1) {
    if (position + step < ranks) return position + step;
  }
  return kNobody;
}

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
  if (const std::uint32_t right = right_child(ranks, position, bit); right != kNobody) node.add_child(right);
  return node;
}

class TreePlan final : public Plan {
 public:
  explicit TreePlan(std::uint32_t ranks) : ranks_(ranks) {}

  CollectiveKind kind() const override { return CollectiveKind::all_reduce; }
  const char* algorithm() const override { return "double_binary_tree"; }
  std::uint32_t ranks() const override { return ranks_; }
  std::uint32_t chunks() const override { return 2; }
  bool in_place() const override { return true; }
  std::uint32_t blocks(std::uint32_t) const override { return 4; }

  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override {
    const TreeNode node = node_of(rank, block / 2);
    if (block % 2 == 0) return std::max(1U, node.child_count);
    return is_root(node) ? 0 : std::max(1U, node.child_count);
  }

  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    const std::uint32_t tree = block / 2;
    const TreeNode node = node_of(rank, tree);
    Step step = block % 2 == 0 ? step_up(node, tree, index) : step_down(node, tree, index);
    step.source = step.destination = {Buffer::input, tree};
    return step;
  }

 private:
  static bool is_root(const TreeNode& node) { return node.parent == kNobody; }
  static std::uint32_t up(std::uint32_t tree) { return 2 * tree; }
  static std::uint32_t down(std::uint32_t tree) { return 2 * tree + 1; }

  // Each child's sum is added; the last one's goes on, up, or at the root down.
  static Step step_up(const TreeNode& node, std::uint32_t tree, std::uint32_t index) {
    using Kind = Step::Kind;
    Step step;
    if (node.child_count == 0) {
      step.kind = Kind::send;
    } else {
      step.from = {node.children[index], up(tree)};
      if (index + 1 < node.child_count) {
        step.kind = Kind::receive_reduce_copy;
        return step;
      }
      step.kind = is_root(node) ? Kind::receive_reduce_copy_send : Kind::receive_reduce_send;
    }
    step.to = is_root(node) ? Partner{node.children[0], down(tree)} : Partner{node.parent, up(tree)};
    return step;
  }
  // The sum of all comes from the parent and goes to the first child, then to the second.
  Step step_down(const TreeNode& node, std::uint32_t tree, std::uint32_t index) const {
    using Kind = Step::Kind;
    Step step;
    if (index == 0) {
      step.kind = node.child_count == 0 ? Kind::receive : Kind::receive_copy_send;
      step.from = {node.parent, is_root(node_of(node.parent, tree)) ? up(tree) : down(tree)};
      step.after_block = up(tree);
      step.after_step = std::max(1U, node.child_count) - 1;
    } else {
      step.kind = Kind::send;
    }
    if (index < node.child_count) step.to = {node.children[index], down(tree)};
    return step;
  }

  TreeNode node_of(std::uint32_t rank, std::uint32_t tree) const {
    if (tree == 0) return node_at(ranks_, rank);
    TreeNode node = node_at(ranks_, position_in_second(rank));
    if (node.parent != kNobody) node.parent = rank_in_second(node.parent);
    for (std::uint32_t i = 0; i < node.child_count; ++i) node.children[i] = rank_in_second(node.children[i]);
    return node;
  }
  std::uint32_t position_in_second(std::uint32_t rank) const {
    return ranks_ % 2 == 0 ? ranks_ - 1 - rank : (rank + ranks_ - 1) % ranks_;
  }
  std::uint32_t rank_in_second(std::uint32_t position) const {
    return ranks_ % 2 == 0 ? ranks_ - 1 - position : (position + 1) % ranks_;
  }

  std::uint32_t ranks_;
};

class DoubleBinaryTree final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  CostFamily cost_family() const override { return CostFamily::tree; }
  std::unique_ptr<Plan> plan(CollectiveKind, std::uint32_t ranks, std::uint32_t) const override {
    return std::make_unique<TreePlan>(ranks);
  }
};

const Registration<CollectiveAlgorithm> kRegistration{
    "double_binary_tree",
    "all-reduce over two complementary binary trees: about 2 log2(p) steps; for small buffers on many ranks",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<DoubleBinaryTree>(); }};

}  // namespace
}  // namespace netsim
