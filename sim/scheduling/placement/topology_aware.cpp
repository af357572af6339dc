// The placement `topology_aware` puts a job into the smallest part of the fabric that has enough free GPUs.
// That is a host, a rack, a pod, and so on (near_gpus.h). It takes the fullest of equal parts, so that empty
// ones stay whole.
//
// Within that part, ranks that communicate most are nearest. Ranks that differ only on the first axis of
// `order` have neighbouring GPUs, then those of the second one. By default these are tensor, expert, context,
// data and pipeline parallelism. Their traffic falls in this order in most trainings.
#include <algorithm>
#include <string>

#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/scheduling/near_gpus.h"
#include "sim/scheduling/placement.h"

namespace netsim {
namespace {

struct TopologyAwareParameters : PlacementParameters {
  ConfigNode order;
};

class TopologyAware final : public Placement {
 public:
  TopologyAware(const TopologyAwareParameters& p, const ConfigNode& where)
      : Placement(p.share), where_(where.place()) {
    if (p.order.is_null()) return;
    heaviest_.clear();
    for (const ConfigNode& name : read_names(p.order, "")) heaviest_.push_back(read_text(name));
  }

  std::vector<GpuId> place(const PlacementView& view) const override {
    const std::vector<GpuId> near =
        NearGpus(view.cluster, free_gpus_without_drives(view, where_)).choose(view.ranks);
    const std::vector<std::size_t> order = order_of(view);
    std::vector<GpuId> gpus(view.ranks);
    for (RankId rank = 0; rank < view.ranks; ++rank)
      gpus[rank] = near[order.empty() ? std::uint32_t{rank} : number_in_order(view, order, rank)];
    return gpus;
  }

 private:
  // Returns the axes of the job, the heaviest first. Those that are not named follow, in their order.
  std::vector<std::size_t> order_of(const PlacementView& view) const {
    std::vector<std::size_t> order;
    for (const std::string& name : heaviest_) {
      for (std::size_t axis = 0; axis < view.axes.size(); ++axis) {
        if (view.axes[axis].first == name) order.push_back(axis);
      }
    }
    for (std::size_t axis = 0; axis < view.axes.size(); ++axis) {
      if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
    }
    return order;
  }

  std::vector<std::string> heaviest_{"tp", "ep", "cp", "dp", "pp"};
  Place where_;
};

const Registration<Placement> kTopologyAware{
    "topology_aware", "the smallest part of the fabric with enough free GPUs, the heaviest axis innermost",
    placement_parameters<TopologyAwareParameters>().list(
        "order", &TopologyAwareParameters::order,
        "axes whose ranks are nearest to each other, the one with the most traffic first; axes that a job "
        "does not have are skipped; default: tp, ep, cp, dp, pp"),
    [](const TopologyAwareParameters& p, const ConfigNode& where) {
      return std::make_unique<TopologyAware>(p, where);
    }};

}  // namespace
}  // namespace netsim
