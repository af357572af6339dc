#include "sim/collectives/execution/latency_model.h"

namespace netsim {

Time LatencyModel::base(const CommunicationRequest& request, Protocol protocol, CostFamily family,
                        Reach farthest) const {
  if (!is_collective(request.kind)) return 0;
  if (farthest == Reach::ideal) return 0;
  const ProtocolParameters& costs = parameters_.of(protocol);
  return parameters_.launch_latency +
         (family == CostFamily::tree ? costs.base_latency_tree : costs.base_latency_ring);
}

LatencyModel::Hop LatencyModel::hop(const CommunicationRequest& request, Protocol protocol, CostFamily family,
                                    std::uint32_t source, std::uint32_t destination) const {
  if (request.raw) return {};
  const bool tree = family == CostFamily::tree;
  const ProtocolParameters& costs = parameters_.of(protocol);
  const auto inside = [&](Time latency) { return Hop{latency, protocol == Protocol::simple ? latency : 0}; };
  switch (endpoint_.reach(source, destination)) {
    case Reach::scale_up:
      return inside(tree ? costs.hop_latency_nvlink_tree : costs.hop_latency_nvlink_ring);
    case Reach::pcie:
      return inside(tree ? costs.hop_latency_pcie_tree : costs.hop_latency_pcie_ring);
    case Reach::scale_out:
      return {tree ? costs.hop_latency_net_tree : costs.hop_latency_net_ring, 0};
    case Reach::self:
    case Reach::ideal:
      break;
  }
  return {};
}

}  // namespace netsim
