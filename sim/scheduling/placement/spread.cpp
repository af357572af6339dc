// The placement `spread` puts one rank on each host in turn, so that neighbours in rank order are on
// different hosts.
#include <algorithm>

#include "sim/core/registry.h"
#include "sim/scheduling/placement.h"

namespace netsim {
namespace {

struct SpreadParameters : PlacementParameters {};

class Spread final : public Placement {
 public:
  Spread(const SpreadParameters& p, Place where) : Placement(p.share), where_(std::move(where)) {}

  // Orders the free GPUs by the number of free GPUs before them in their host, then by GPU.
  std::vector<GpuId> place(const PlacementView& view) const override {
    const std::vector<GpuId> free = enough_gpus(view, where_);
    std::vector<std::pair<std::uint32_t, GpuId>> order;
    std::vector<std::uint32_t> of_host(view.cluster.host_count, 0);
    for (const GpuId gpu : free) order.emplace_back(of_host[view.cluster.gpus[gpu].host]++, gpu);
    std::sort(order.begin(), order.end());
    std::vector<GpuId> gpus;
    for (RankId rank = 0; rank < view.ranks; ++rank) gpus.push_back(order[rank].second);
    return gpus;
  }

 private:
  Place where_;
};

const Registration<Placement> kSpread{"spread", "one rank on each host in turn, as few on a host as possible",
                                      placement_parameters<SpreadParameters>(),
                                      [](const SpreadParameters& p, const ConfigNode& where) {
                                        return std::make_unique<Spread>(p, where.place());
                                      }};

}  // namespace
}  // namespace netsim
