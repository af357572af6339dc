// The placement `packed` puts ranks on the first free GPUs in order. If the job is alone, rank r runs on GPU
// r.
#include "sim/core/registry.h"
#include "sim/scheduling/placement.h"

namespace netsim {
namespace {

struct PackedParameters : PlacementParameters {};

class Packed final : public Placement {
 public:
  Packed(const PackedParameters& p, Place where) : Placement(p.share), where_(std::move(where)) {}
  std::vector<GpuId> place(const PlacementView& view) const override {
    std::vector<GpuId> gpus = enough_gpus(view, where_);
    gpus.resize(view.ranks);
    return gpus;
  }

 private:
  Place where_;
};

const Registration<Placement> kPacked{"packed", "ranks on the first free GPUs, host after host",
                                      placement_parameters<PackedParameters>(),
                                      [](const PackedParameters& p, const ConfigNode& where) {
                                        return std::make_unique<Packed>(p, where.place());
                                      }};

}  // namespace
}  // namespace netsim
