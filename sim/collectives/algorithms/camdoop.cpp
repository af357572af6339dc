// Camdoop (Costa, Donnelly, Rowstron, O'Shea, NSDI 2012): servers of a torus combine on the path. Each server
// adds its own data to what its children send and passes one stream on, over trees that share no link. On
// CamCube's torus of three dimensions there are six trees, each with a sixth of the data.
//
// A reduce of n bytes takes n / (6 B) and the latency of the longest path, however many servers there are. An
// all_reduce brings the sums back down the trees. In a reduce_scatter every server is the root of its part,
// as a reducer of Camdoop's all-to-all case.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/torus_links.h"
#include "sim/collectives/algorithms/torus_scatter_plan.h"
#include "sim/collectives/algorithms/torus_trees.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr const char* kCamdoopName = "camdoop";

class TorusTreePlan final : public TreePlan {
 public:
  TorusTreePlan(CollectiveKind kind, std::uint32_t root, const TorusTrees& trees)
      : TreePlan(kCamdoopName, kind, trees.positions(), root, {.trees = trees.count()}), trees_(trees) {}

 private:
  TreeNode node(std::uint32_t rank, std::uint32_t tree) const override {
    TreeNode node = trees_.node(trees_.relative(rank, root_), tree);
    if (!node.is_root()) node.parent = trees_.absolute(node.parent, root_);
    for (std::uint32_t i = 0; i < node.child_count; ++i)
      node.children[i] = trees_.absolute(node.children[i], root_);
    return node;
  }

  TorusTrees trees_;
};

class Camdoop final : public CollectiveAlgorithm {
 public:
  explicit Camdoop(Dimensions dimensions) : dimensions_(std::move(dimensions)) {}
  PlanTraits traits() const override { return {.links = true}; }
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::reduce || kind == CollectiveKind::all_reduce ||
           kind == CollectiveKind::reduce_scatter;
  }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    const TorusTrees trees(torus_of(dimensions_, kCamdoopName, kind, shape));
    if (kind != CollectiveKind::reduce_scatter)
      return std::make_unique<TorusTreePlan>(kind, shape.root, trees);
    check_chunks(kCamdoopName, kind, shape.ranks, std::uint64_t{shape.ranks} * trees.count());
    return std::make_unique<TorusScatterPlan>(kCamdoopName, kind, trees);
  }

 private:
  Dimensions dimensions_;
};

const Registration<CollectiveAlgorithm> kCamdoop{
    kCamdoopName,
    "reduce, all-reduce and reduce-scatter of servers on a torus, which add up what passes, over trees that "
    "share no link (Camdoop): two trees for each dimension, one where a dimension has two servers",
    dimensions_parameters("those of the torus whose links join the ranks; one dimension of all ranks where "
                          "no links are known"),
    [](const DimensionsParameters& p, const ConfigNode&) {
      return std::make_unique<Camdoop>(read_dimensions(p, 1, kMostDimensionsOfTorus));
    }};

}  // namespace
}  // namespace netsim
