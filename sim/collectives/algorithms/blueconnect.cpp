// BlueConnect (Cho, Finkler, Serrano, Kung, Hunter, IBM J. of Research and Development 63, 2019) for a
// factorisation p = p_0 p_1 ... of the ranks. It runs reduce-scatters around rings of p_0 neighbours, then of
// p_1 ranks at distance p_0, and so on, and the all-gathers in reverse order. Level i takes 2 (p_i - 1) steps
// and sends 2 (p_i - 1)/p_i n / (p_0 ... p_(i-1)) bytes: the nearest and fastest links carry the most.
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/ring_plan.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

constexpr std::size_t kMaxDimensions = 32;

RingSlice levels_of(const Dimensions& dimensions) {
  RingSlice levels;
  for (std::uint32_t i = 0; i < dimensions.size(); ++i) levels.push_back({i, 1});
  return levels;
}

class BlueConnect final : public CollectiveAlgorithm {
 public:
  explicit BlueConnect(Dimensions dimensions) : dimensions_(std::move(dimensions)) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    const Dimensions dimensions =
        dimensions_of(dimensions_, prime_factors(shape.ranks), "blueconnect", kind, shape.ranks);
    return std::make_unique<RingPlan>("blueconnect", kind, dimensions,
                                      std::vector<RingSlice>{levels_of(dimensions)});
  }

 private:
  Dimensions dimensions_;
};

const Registration<CollectiveAlgorithm> kBlueconnect{
    "blueconnect",
    "runs all-reduce over any factorisation of the ranks, [GPUs of a host, hosts of a rack, ...]; it "
    "reduce-scatters from the inner level to the outer one and all-gathers back, for levels of different "
    "rates",
    dimensions_parameters("the prime factors of the number of ranks, smallest first"),
    [](const DimensionsParameters& p, const ConfigNode&) {
      return std::make_unique<BlueConnect>(read_dimensions(p, 1, kMaxDimensions));
    }};

}  // namespace
}  // namespace netsim
