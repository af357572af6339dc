// Bucket algorithm on a torus of one to three dimensions (Jain & Sabharwal, ICS 2010; Barnett, Littlefield,
// Payne, van de Geijn, J. of Parallel and Distributed Computing 24, 1995). It runs the rings of one dimension
// after the other, for 2d slices of the buffer at once. Slice 2i begins in dimension i, and slice 2i+1 goes
// in the opposite direction. So in each phase each of the 2d links of a rank carries one slice. It takes 2
// (sum of sizes - d) steps and has 2d times the bandwidth of one ring.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/ring_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr std::size_t kMaxTorusDimensions = 3;

std::vector<RingSlice> rotated_slices(const Dimensions& dimensions) {
  const auto count = static_cast<std::uint32_t>(dimensions.size());
  std::vector<RingSlice> slices(2 * dimensions.size());
  for (std::uint32_t slice = 0; slice < slices.size(); ++slice) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t dimension = (slice / 2 + i) % count;
      slices[slice].push_back({dimension, slice % 2 == 0 ? 1 : dimensions[dimension] - 1});
    }
  }
  return slices;
}

class TorusBucket final : public CollectiveAlgorithm {
 public:
  explicit TorusBucket(Dimensions dimensions) : dimensions_(std::move(dimensions)) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    const Dimensions dimensions =
        dimensions_of(dimensions_, {shape.ranks}, "torus_bucket", kind, shape.ranks);
    return std::make_unique<RingPlan>("torus_bucket", kind, dimensions, rotated_slices(dimensions));
  }

 private:
  Dimensions dimensions_;
};

const Registration<CollectiveAlgorithm> kTorusBucket{
    "torus_bucket",
    "all-reduce over a torus, dimension by dimension, with a slice of the buffer for each direction of each "
    "dimension: all links of a torus at once",
    dimensions_parameters("one dimension of all ranks"),
    [](const DimensionsParameters& p, const ConfigNode&) {
      return std::make_unique<TorusBucket>(read_dimensions(p, 1, kMaxTorusDimensions));
    }};

}  // namespace
}  // namespace netsim
