// WithNcclTraits: what NCCL knows of an algorithm besides its plans. An algorithm of NCCL's, or one that has
// the costs of such an algorithm, derives from it. All others have the costs of a ring.
#pragma once

#include <cstdint>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/library/step_costs.h"

namespace netsim {

// CostFamily: the row of NCCL's tuning.cc that gives an algorithm's latencies, and the bandwidth by which
// NCCL chooses it. The rows are rings, trees, PAT and algorithms whose switches add and copy. The latter use
// NVSwitches (NVLS; over several hosts NVLS tree, or NVLS with CollNet) or only the switches of the fabric
// between hosts (CollNet).
enum class CostFamily : std::uint8_t {
  ring,
  tree,
  pat,
  nvls,
  nvls_tree,
  nvls_collnet,
  collnet_direct,
  collnet_chain
};
// Returns whether NVSwitches take part in algorithms of this family.
constexpr bool by_switches(CostFamily family) {
  return family == CostFamily::nvls || family == CostFamily::nvls_tree || family == CostFamily::nvls_collnet;
}
// Returns whether the switches of the fabric between hosts take part.
constexpr bool by_fabric(CostFamily family) {
  return family == CostFamily::nvls_collnet || family == CostFamily::collnet_direct ||
         family == CostFamily::collnet_chain;
}
// Returns the latencies, in the section `collectives`, of algorithms of this family.
constexpr LatencyRow latency_row(CostFamily family) {
  return family == CostFamily::tree  ? LatencyRow::tree
         : family == CostFamily::pat ? LatencyRow::pat
                                     : LatencyRow::ring;
}

struct NcclTraits {
  CostFamily family = CostFamily::ring;
  // Number of channels on each ring or chain of a group on several hosts. 0: the section `collectives` gives
  // it. kChannelsOfSearch: as many as NCCL has (search_channels() in nccl_tuning.h).
  static constexpr std::uint32_t kChannelsOfSearch = UINT32_MAX;
  std::uint32_t scale_out_channels = 0;
  // Whether the algorithm uses NCCL's sends and receives. A rank then has GroupShape::channels_per_peer
  // channels to each other rank, unless `scale_out_channels` gives a number.
  bool sends_and_receives = false;
  // Whether an all-to-all in a host uses LL up to 16 KiB for each channel that a peer may have, as
  // older NCCL does. Otherwise the channels that the message has count.
  bool ll_by_peer = false;
  // Whether a lone send leaves its host by the NIC of the receiver's rail (PXN; peer_channels.h).
  bool pxn = false;
};

class WithNcclTraits {
 public:
  virtual ~WithNcclTraits() = default;
  // Any thread may call it.
  virtual NcclTraits nccl_traits() const = 0;
};

inline NcclTraits nccl_traits_of(const CollectiveAlgorithm& algorithm) {
  const auto* known = dynamic_cast<const WithNcclTraits*>(&algorithm);
  return known == nullptr ? NcclTraits() : known->nccl_traits();
}

}  // namespace netsim
