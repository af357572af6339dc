// The placement `random` puts ranks on free GPUs drawn at random. That is the state of a cluster after many
// jobs have come and gone.
#include <algorithm>

#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/scheduling/placement.h"

namespace netsim {
namespace {

struct RandomParameters : PlacementParameters {
  std::int64_t seed = 0;
};

class Random final : public Placement {
 public:
  Random(const RandomParameters& p, Place where)
      : Placement(p.share), seed_(static_cast<std::uint64_t>(p.seed)), where_(std::move(where)) {}

  // Shuffles as many GPUs as there are ranks (Fisher and Yates). The random stream has the job's name, so
  // that draws of other jobs change nothing here.
  std::vector<GpuId> place(const PlacementView& view) const override {
    std::vector<GpuId> gpus = enough_gpus(view, where_);
    RandomStream random(seed_ != 0 ? seed_ : view.seed, "placement." + view.job);
    for (RankId rank = 0; rank < view.ranks; ++rank) {
      const std::size_t drawn = rank + static_cast<std::size_t>(random.below(gpus.size() - rank));
      std::swap(gpus[rank], gpus[drawn]);
    }
    gpus.resize(view.ranks);
    return gpus;
  }

 private:
  std::uint64_t seed_;
  Place where_;
};

const Registration<Placement> kRandom{
    "random", "ranks on free GPUs drawn at random",
    placement_parameters<RandomParameters>().integer("seed", &RandomParameters::seed, {0, INT64_MAX},
                                                     "seed of the draws; 0: the run's seed"),
    [](const RandomParameters& p, const ConfigNode& where) {
      return std::make_unique<Random>(p, where.place());
    }};

}  // namespace
}  // namespace netsim
