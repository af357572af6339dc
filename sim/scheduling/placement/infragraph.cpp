// The placement `infragraph` follows the document that describes the cluster. Rank r runs on the xpu with the
// annotation `rank: r` (topology/files/infragraph/infragraph.h). Hosts and their xpus are already numbered by
// rank. If ranks alternate between hosts (0, 2 and 1, 3), only this placement follows the annotations.
#include <fmt/format.h>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/scheduling/placement.h"

namespace netsim {
namespace {

class Annotated final : public Placement {
 public:
  Annotated(const PlacementParameters& p, Place where) : Placement(p.share), where_(std::move(where)) {}

  std::vector<GpuId> place(const PlacementView& view) const override {
    enough_gpus(view, where_);
    const std::vector<std::int64_t>& ranks = view.cluster.gpu_ranks;
    if (ranks.empty())
      throw ConfigError(where_, "no file that describes the cluster assigns ranks to its GPUs");
    if (ranks.size() != view.cluster.gpus.size()) {
      throw ConfigError(where_, fmt::format("the file assigns ranks to {} GPUs, and the cluster has {}: it "
                                            "takes all hosts of the file, in their order",
                                            ranks.size(), view.cluster.gpus.size()));
    }
    std::vector<GpuId> gpus(view.ranks);
    for (GpuId gpu = 0; gpu < ranks.size(); ++gpu) {
      if (ranks[gpu] < 0 || ranks[gpu] >= std::int64_t{view.ranks}) continue;
      GpuId& place = gpus[static_cast<std::size_t>(ranks[gpu])];
      if (!place.is_none()) fail(view, ranks[gpu], fmt::format("is assigned to GPUs {} and {}", place, gpu));
      if (view.taken[gpu]) fail(view, ranks[gpu], fmt::format("is on GPU {}, where another job is", gpu));
      place = gpu;
    }
    for (RankId rank = 0; rank < view.ranks; ++rank) {
      if (gpus[rank].is_none()) fail(view, rank, "is assigned to no GPU");
    }
    return gpus;
  }

 private:
  [[noreturn]] void fail(const PlacementView& view, std::int64_t rank, const std::string& what) const {
    throw ConfigError(where_, fmt::format("rank {} of job '{}' ({} ranks) {} by the file's annotations", rank,
                                          view.job, view.ranks, what));
  }

  Place where_;
};

const Registration<Placement> kInfragraph{
    "infragraph", "ranks on the GPUs that an InfraGraph document assigns to them",
    placement_parameters<PlacementParameters>(), [](const PlacementParameters& p, const ConfigNode& where) {
      return std::make_unique<Annotated>(p, where.place());
    }};

}  // namespace
}  // namespace netsim
