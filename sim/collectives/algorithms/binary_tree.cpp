// Pipelined binary tree (Hoefler & Moor, Supercomputing Frontiers and Innovations 1, 2014, section 3). It is
// a complete binary tree: position i has the children 2i+1 and 2i+2, counted from the root. The rounds of a
// large buffer follow each other through it. With h = floor(log2 p) levels and k rounds it takes 2 (h + k -
// 1) steps of n/k on one port. Every inner rank sends or receives each round twice, one after the other.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/tree_plan.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class BinaryTreePlan final : public TreePlan {
 public:
  BinaryTreePlan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root)
      : TreePlan("binary_tree", kind, ranks, root, {.serial_sends = true}) {}

 private:
  TreeNode node(std::uint32_t rank, std::uint32_t) const override {
    const std::uint64_t place = from_root(rank);
    TreeNode node;
    if (place != 0) node.parent = from_rank_0(static_cast<std::uint32_t>((place - 1) / 2));
    for (std::uint64_t child = 2 * place + 1; child <= 2 * place + 2 && child < ranks_; ++child)
      node.add_child(from_rank_0(static_cast<std::uint32_t>(child)));
    return node;
  }
};

class BinaryTree final : public CollectiveAlgorithm, public WithNcclTraits {
 public:
  PlanTraits traits() const override { return {.order = RankOrder::domains}; }
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ||
           kind == CollectiveKind::all_reduce;
  }
  NcclTraits nccl_traits() const override { return {.family = CostFamily::tree}; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    return std::make_unique<BinaryTreePlan>(kind, shape.ranks, has_root(kind) ? shape.root : 0);
  }
};

const Registration<CollectiveAlgorithm> kBinaryTree{
    "binary_tree",
    "runs broadcast, reduce and all-reduce over a binary tree, round after round; it takes few steps at half "
    "of the bandwidth, for buffers of medium size",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<BinaryTree>(); }};

}  // namespace
}  // namespace netsim
