// C-Cube's chained trees (Cho et al., C-Cube, HPCA 2023): an all-reduce over binary trees. A chunk comes down
// as soon as its sum is at the root. Meanwhile the sums of later chunks still go up, in the other direction
// of the same links.
//
// With k chunks and h levels a tree takes 2h + k - 1 message times. It takes 2 (h + k - 1) where the
// broadcast waits for all sums (`chained: false`). Two trees share the buffer. The second one counts the
// ranks backwards, so that the inner ranks of one are leaves of the other.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/tree_plan.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct ChainedTreesParameters {
  std::int64_t trees = 2;
  std::int64_t chunks = 8;
  bool chained = true;
};

class ChainedTreesPlan final : public TreePlan {
 public:
  ChainedTreesPlan(std::uint32_t ranks, const TreeOptions& options)
      : TreePlan("chained_trees", CollectiveKind::all_reduce, ranks, 0, options) {}

 private:
  // A complete binary tree: position i has the children 2i+1 and 2i+2.
  TreeNode node(std::uint32_t rank, std::uint32_t tree) const override {
    const std::uint64_t place = allreduce(rank, tree);
    TreeNode node;
    if (place != 0) node.parent = allreduce(static_cast<std::uint32_t>((place - 1) / 2), tree);
    for (std::uint64_t child = 2 * place + 1; child <= 2 * place + 2 && child < ranks_; ++child)
      node.add_child(allreduce(static_cast<std::uint32_t>(child), tree));
    return node;
  }
  std::uint32_t allreduce(std::uint32_t number, std::uint32_t tree) const {
    return tree == 0 ? number : ranks_ - 1 - number;
  }
};

class ChainedTrees final : public CollectiveAlgorithm, public WithNcclTraits {
 public:
  explicit ChainedTrees(const ChainedTreesParameters& p)
      : options_{.trees = static_cast<std::uint32_t>(p.trees),
                 .chunks = static_cast<std::uint32_t>(p.chunks),
                 .chained = p.chained} {}
  PlanTraits traits() const override { return {.order = RankOrder::domains}; }
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  NcclTraits nccl_traits() const override { return {.family = CostFamily::tree}; }
  std::unique_ptr<Plan> plan(CollectiveKind, const GroupShape& shape) const override {
    return std::make_unique<ChainedTreesPlan>(shape.ranks, options_);
  }

 private:
  TreeOptions options_;
};

const Registration<CollectiveAlgorithm> kChainedTrees{
    "chained_trees",
    "runs all-reduce over one or two binary trees whose broadcasts overlap their reductions, chunk by chunk",
    Parameters<ChainedTreesParameters>()
        .integer("trees", &ChainedTreesParameters::trees, {1, 2},
                 "trees, each with an equal part of the buffer")
        .integer("chunks", &ChainedTreesParameters::chunks, {1, 65536},
                 "chunks of a tree's part of the buffer")
        .flag("chained", &ChainedTreesParameters::chained,
              "the root broadcasts each chunk as soon as it is reduced; false: it broadcasts when all chunks "
              "are reduced"),
    [](const ChainedTreesParameters& p, const ConfigNode&) { return std::make_unique<ChainedTrees>(p); }};

}  // namespace
}  // namespace netsim
