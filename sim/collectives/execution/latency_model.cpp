#include "sim/collectives/execution/latency_model.h"

namespace netsim {

Time LatencyModel::base(const CommunicationRequest& request, CostFamily family, Reach farthest) const {
  if (request.members->size() == 1 || !is_collective(request.kind)) return 0;
  if (farthest == Reach::ideal) return 0;
  return family == CostFamily::tree ? parameters_.base_latency_tree : parameters_.base_latency_ring;
}

Time LatencyModel::hop(const CommunicationRequest& request, CostFamily family, std::uint32_t source,
                       std::uint32_t destination) const {
  if (request.raw) return 0;
  const bool tree = family == CostFamily::tree;
  switch (endpoint_.reach(source, destination)) {
    case Reach::scale_up:
      return tree ? parameters_.hop_latency_nvlink_tree : parameters_.hop_latency_nvlink_ring;
    case Reach::pcie:
      return tree ? parameters_.hop_latency_pcie_tree : parameters_.hop_latency_pcie_ring;
    case Reach::scale_out:
      return tree ? parameters_.hop_latency_net_tree : parameters_.hop_latency_net_ring;
    case Reach::self:
    case Reach::ideal:
      break;
  }
  return 0;
}

}  // namespace netsim
