// NCCL's choice: the algorithm for which its cost model estimates the lowest time, by size and group
// (src/graph/tuning.cc; library/nccl/nccl_tuning.h). An all-reduce uses a ring or a tree. Where switches add
// and copy it may use NVLS in one host, or NVLS tree over several. All-gather and reduce-scatter use rings,
// NVLS, or PAT for groups with one GPU a host. Broadcast and reduce use a chain along a ring.
//
// Where a fabric aggregates (network.switch.aggregation) CollNet is added. It sends directly to the GPUs that
// have NICs (`sharp`), or by NVLS within the hosts (`sharp` with `nvls`). An all-reduce may also use a chain
// of each host's GPUs (`collnet_chain`). NCCL enables CollNet only with NCCL_COLLNET_ENABLE=1; here the
// fabric's setting enables it.
#include <memory>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/library/candidates.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

struct NcclParameters {
  bool ring = true;
  bool tree = true;
  bool nvls = true;
  bool pat = true;
  bool collnet = true;
  std::int64_t scale_out_channels = 0;
};

class Nccl final : public CollectiveAlgorithm, public WithCandidates, public WithNcclTraits {
 public:
  explicit Nccl(const NcclParameters& p)
      : scale_out_channels_(static_cast<std::uint32_t>(p.scale_out_channels)) {
    const auto& registry = Registry<CollectiveAlgorithm>::instance();
    if (p.ring) own_.push_back(registry.create("ring"));
    if (p.ring) own_.push_back(registry.create("chain"));
    if (p.tree) own_.push_back(registry.create("tree"));
    if (p.nvls) own_.push_back(registry.create("nvls"));
    if (p.nvls) own_.push_back(registry.create("nvls_tree"));
    if (p.collnet) own_.push_back(registry.create("sharp"));
    if (p.collnet) own_.push_back(registry.create("collnet_chain"));
    if (p.collnet && p.nvls)
      own_.push_back(registry.create(parse_config("{kind: sharp, nvls: true}", "nccl"), ""));
    if (p.pat) own_.push_back(registry.create("pat"));
  }
  bool supports(CollectiveKind kind) const override { return !candidates(kind).empty(); }
  std::vector<const CollectiveAlgorithm*> candidates(CollectiveKind kind) const override {
    std::vector<const CollectiveAlgorithm*> suitable;
    for (const auto& one : own_) {
      if (one->supports(kind) && uses(nccl_traits_of(*one).family, kind)) suitable.push_back(one.get());
    }
    return suitable;
  }
  NcclTraits nccl_traits() const override {
    return {.scale_out_channels =
                scale_out_channels_ == 0 ? NcclTraits::kChannelsOfSearch : scale_out_channels_};
  }
  // Without size and group it makes the plan of the first algorithm that supports the kind.
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    return candidates(kind).front()->plan(kind, shape);
  }

 private:
  // NCCL's CollNetDirect supports fewer kinds than `sharp`.
  static bool uses(CostFamily family, CollectiveKind kind) {
    return family != CostFamily::collnet_direct ||
           (kind != CollectiveKind::broadcast && kind != CollectiveKind::reduce);
  }

  std::uint32_t scale_out_channels_;
  std::vector<std::unique_ptr<CollectiveAlgorithm>> own_;
};

const Registration<CollectiveAlgorithm> kNccl{
    "nccl",
    "the algorithm that NCCL's cost model chooses for the size and the group: ring, tree, NVLS, NVLS tree, "
    "CollNet or PAT",
    Parameters<NcclParameters>()
        .flag("ring", &NcclParameters::ring, "rings may be chosen; false: NCCL_ALGO=^Ring")
        .flag("tree", &NcclParameters::tree, "trees may be chosen; false: NCCL_ALGO=^Tree")
        .flag("nvls", &NcclParameters::nvls, "NVLS and NVLS tree may be chosen; false: NCCL_NVLS_ENABLE=0")
        .flag("pat", &NcclParameters::pat,
              "PAT may be chosen for groups with one GPU a host; false: NCCL_PAT_ENABLE=0")
        .flag("collnet", &NcclParameters::collnet,
              "CollNet may be chosen where a fabric's switches add up; false: NCCL_COLLNET_ENABLE=0")
        .integer("scale_out_channels", &NcclParameters::scale_out_channels, {0, 32},
                 "channels on each ring or chain of a group on several hosts; 0: as in NCCL, 2, and since "
                 "Hopper more where NICs are few (ncclTopoDupChannels, ncclTopoPostset)"),
    [](const NcclParameters& p, const ConfigNode&) { return std::make_unique<Nccl>(p); }};

}  // namespace
}  // namespace netsim
