// Double binary tree: half of the buffer is reduced to the root of each of two trees (double_binary_tree.h)
// and broadcast from there. Over both trees a rank has at most two children and sends at most 2n bytes, in
// about 2 log2(p) steps.
#include "sim/collectives/algorithms/double_binary_tree.h"

#include "sim/collectives/algorithm.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

// Returns the first existing child position to the right of `position`, for a subtree of height `bit`.
std::uint32_t right_child(std::uint32_t count, std::uint32_t position, std::uint32_t bit) {
  for (std::uint32_t step = bit >> 1; step != 0; step >>= 1) {
    if (position + step < count) return position + step;
  }
  return kNoIndex;
}

// Returns the node of a position, with children in NCCL's order.
TreeNode node_at(std::uint32_t count, std::uint32_t position) {
  TreeNode node;
  std::uint32_t bit = 1;
  while (bit < count && (bit & position) == 0) bit <<= 1;
  if (position == 0) {
    node.add_child(bit >> 1);
    return node;
  }
  const std::uint32_t below = position ^ bit, above = below | (bit << 1);
  node.parent = above < count ? above : below;
  if (bit > 1) node.add_child(position - (bit >> 1));
  if (const std::uint32_t right = right_child(count, position, bit); right != kNoIndex) node.add_child(right);
  return node;
}

std::uint32_t position_in_second(std::uint32_t count, std::uint32_t member) {
  return count % 2 == 0 ? count - 1 - member : (member + count - 1) % count;
}
std::uint32_t member_in_second(std::uint32_t count, std::uint32_t position) {
  return count % 2 == 0 ? count - 1 - position : (position + 1) % count;
}

class DoubleBinaryTreePlan final : public TreePlan {
 public:
  explicit DoubleBinaryTreePlan(std::uint32_t ranks)
      : TreePlan("double_binary_tree", CollectiveKind::all_reduce, ranks, 0,
                 {.trees = 2, .last_child_first = false}) {}

 private:
  TreeNode node(std::uint32_t rank, std::uint32_t tree) const override {
    return double_binary_node(ranks_, rank, tree);
  }
};

class DoubleBinaryTree final : public CollectiveAlgorithm, public WithNcclTraits {
 public:
  PlanTraits traits() const override { return {.order = RankOrder::domains}; }
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  NcclTraits nccl_traits() const override { return {.family = CostFamily::tree}; }
  std::unique_ptr<Plan> plan(CollectiveKind, const GroupShape& shape) const override {
    return std::make_unique<DoubleBinaryTreePlan>(shape.ranks);
  }
};

const Registration<CollectiveAlgorithm> kDoubleBinaryTree{
    "double_binary_tree",
    "runs all-reduce over two complementary binary trees in about 2 log2(p) steps, for small buffers on many "
    "ranks",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<DoubleBinaryTree>(); }};

}  // namespace

TreeNode double_binary_node(std::uint32_t count, std::uint32_t member, std::uint32_t tree) {
  if (tree == 0) return node_at(count, member);
  TreeNode node = node_at(count, position_in_second(count, member));
  if (!node.is_root()) node.parent = member_in_second(count, node.parent);
  for (std::uint32_t i = 0; i < node.child_count; ++i)
    node.children[i] = member_in_second(count, node.children[i]);
  return node;
}

}  // namespace netsim
