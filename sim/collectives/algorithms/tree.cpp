// NCCL's tree (src/graph/connect.cc, trees.cc): within each domain (a host, a rack) the ranks form a chain,
// and a binary tree joins the chains. A chain's first rank talks to its parent domain and to the child domain
// above its position. The second rank talks to the child domain below, so that two NICs share the work
// (NCCL_TOPO_PATTERN_BALANCED_TREE). An NCCL graph file may let one rank talk to both.
//
// Sums go up and the result comes down. An all-reduce of n over N domains of k ranks takes 2 (k - 1 + log2 N)
// steps.
//
// It is the first tree of a double binary tree. Half of the channels run it over the domains in another
// order, which makes it the second one (library/communicator_layout.h). Over both, a domain sends at most
// 2n bytes.
#include <algorithm>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/double_binary_tree.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class NcclTreePlan final : public TreePlan {
 public:
  NcclTreePlan(std::uint32_t ranks, const DomainSizes& domains, TreePattern pattern)
      : TreePlan("tree", CollectiveKind::all_reduce, ranks, 0, {.last_child_first = false}),
        pattern_(pattern) {
    std::uint32_t first = 0;
    for (std::size_t domain = 0; first < ranks; ++domain) {
      firsts_.push_back(first);
      first += domains[domain % domains.size()];
    }
    firsts_.push_back(ranks);
  }

 private:
  std::uint32_t domains() const { return static_cast<std::uint32_t>(firsts_.size()) - 1; }
  std::uint32_t domain_of(std::uint32_t rank) const {
    return static_cast<std::uint32_t>(std::upper_bound(firsts_.begin(), firsts_.end(), rank) -
                                      firsts_.begin()) -
           1;
  }
  std::uint32_t size_of(std::uint32_t domain) const { return firsts_[domain + 1] - firsts_[domain]; }
  // Returns the rank that talks to child `index` of a domain in a tree. The only child of a root is above it.
  std::uint32_t rank_for_child(std::uint32_t domain, const TreeNode& in_tree, std::uint32_t index) const {
    const bool below = index == 0 && !in_tree.is_root();
    const bool second = pattern_ == TreePattern::split || (pattern_ == TreePattern::balanced && below);
    return firsts_[domain] + (second && size_of(domain) > 1 ? 1 : 0);
  }
  std::uint32_t parent_of_chain(std::uint32_t domain, const TreeNode& in_tree) const {
    if (in_tree.is_root()) return kNoIndex;
    const TreeNode parent = double_binary_node(domains(), in_tree.parent, 0);
    const auto* const child = std::find(parent.children.begin(), parent.children.end(), domain);
    return rank_for_child(in_tree.parent, parent,
                          static_cast<std::uint32_t>(child - parent.children.begin()));
  }
  TreeNode node(std::uint32_t rank, std::uint32_t) const override {
    const std::uint32_t domain = domain_of(rank);
    const TreeNode in_tree = domains() == 1 ? TreeNode() : double_binary_node(domains(), domain, 0);
    TreeNode node;
    node.parent = rank > firsts_[domain] ? rank - 1 : parent_of_chain(domain, in_tree);
    if (rank + 1 < firsts_[domain + 1]) node.add_child(rank + 1);
    for (std::uint32_t i = 0; i < in_tree.child_count; ++i) {
      if (rank_for_child(domain, in_tree, i) == rank) node.add_child(firsts_[in_tree.children[i]]);
    }
    return node;
  }

  TreePattern pattern_;
  std::vector<std::uint32_t> firsts_;  // first rank of each domain, and the number of ranks
};

class Tree final : public CollectiveAlgorithm, public WithNcclTraits {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  NcclTraits nccl_traits() const override { return {.family = CostFamily::tree}; }
  PlanTraits traits() const override { return {.order = RankOrder::chains, .hosts = true}; }
  // Where the hosts are not known, each rank is a domain.
  std::unique_ptr<Plan> plan(CollectiveKind, const GroupShape& shape) const override {
    const DomainSizes& sizes = shape.sizes;
    return std::make_unique<NcclTreePlan>(shape.ranks, sizes.empty() ? DomainSizes{1} : sizes, shape.pattern);
  }
};

const Registration<CollectiveAlgorithm> kTree{
    "tree",
    "all-reduce as NCCL's tree: a chain in each host, binary trees over the hosts; few steps over many "
    "hosts, and on two hosts more bandwidth than the NICs give a ring",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Tree>(); }};

}  // namespace
}  // namespace netsim
