// The placement `strided` takes every n-th free GPU. At the end it continues from the next GPU at the
// beginning.
#include <fmt/format.h>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/scheduling/placement.h"

namespace netsim {
namespace {

struct StridedParameters : PlacementParameters {
  std::int64_t stride = 8;
};

class Strided final : public Placement {
 public:
  Strided(const StridedParameters& p, Place where)
      : Placement(p.share), stride_(static_cast<std::size_t>(p.stride)), where_(std::move(where)) {}

  std::vector<GpuId> place(const PlacementView& view) const override {
    const std::vector<GpuId> free = enough_gpus(view, where_);
    std::vector<GpuId> gpus;
    for (std::size_t first = 0; gpus.size() < view.ranks; ++first) {
      for (std::size_t at = first; at < free.size() && gpus.size() < view.ranks; at += stride_)
        gpus.push_back(free[at]);
    }
    return gpus;
  }

 private:
  std::size_t stride_;
  Place where_;
};

const Registration<Placement> kStrided{
    "strided", "ranks on every n-th free GPU, wrapping around",
    placement_parameters<StridedParameters>().integer("stride", &StridedParameters::stride, {1, 1 << 20},
                                                      "distance from one rank to the next, in free GPUs"),
    [](const StridedParameters& p, const ConfigNode& where) {
      return std::make_unique<Strided>(p, where.place());
    }};

}  // namespace
}  // namespace netsim
