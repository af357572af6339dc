// 2-D torus (Mikami et al., arXiv 1811.05233): reduce-scatter around the rows of X ranks, all-reduce around
// the columns of Y, all-gather around the rows. It takes 2 (X + Y - 2) steps instead of a ring's 2 (p - 1),
// and sends as many bytes.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/ring_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

class Torus2d final : public CollectiveAlgorithm {
 public:
  explicit Torus2d(Dimensions dimensions) : dimensions_(std::move(dimensions)) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    const Dimensions dimensions =
        dimensions_of(dimensions_, nearest_factors(shape.ranks), "torus_2d", kind, shape.ranks);
    return std::make_unique<RingPlan>("torus_2d", kind, dimensions, std::vector<RingSlice>{{{0, 1}, {1, 1}}});
  }

 private:
  Dimensions dimensions_;
};

const Registration<CollectiveAlgorithm> kTorus2d{
    "torus_2d",
    "runs all-reduce over a grid, [ranks of a row, rows], by reduce-scatter in rows, all-reduce in columns "
    "and all-gather in rows; it sends the fewest bytes in far fewer steps than a ring",
    dimensions_parameters("the two factors of the number of ranks that are nearest to each other"),
    [](const DimensionsParameters& p, const ConfigNode&) {
      return std::make_unique<Torus2d>(read_dimensions(p, 2, 2));
    }};

}  // namespace
}  // namespace netsim
