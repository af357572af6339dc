#include "sim/collectives/execution/latency_model.h"

#include <algorithm>

namespace netsim {
namespace {

// Returns 0 where the rate is not known.
Time time_at(BitRate rate, Bytes bytes) { return rate == 0 ? 0 : transmission_time(bytes, rate); }

}  // namespace

Time LatencyModel::base(const CommunicationRequest& request, Protocol protocol, CostFamily family,
                        Reach farthest) const {
  if (!is_collective(request.kind)) return 0;
  if (farthest == Reach::ideal) return 0;
  const ProtocolParameters& costs = parameters_.of(protocol);
  if (family == CostFamily::pat)
    return parameters_.launch_latency + parameters_.pat_latency(request.members->size());
  return parameters_.launch_latency +
         (family == CostFamily::tree ? costs.base_latency_tree : costs.base_latency_ring);
}

LatencyModel::Hop LatencyModel::hop(const CommunicationRequest& request, const Chunking& chunking,
                                    CostFamily family, const Leg& leg, Bytes bytes) const {
  if (request.raw) return {};
  const bool pat = family == CostFamily::pat, tree = family == CostFamily::tree || pat;
  const ProtocolParameters& costs = parameters_.of(chunking.protocol);
  const Time pass = time_at(chunking.block_rate, bytes);
  // Returns how much longer it takes than the wire.
  const auto beyond = [&](Time time, BitRate rate) { return std::max<Time>(0, time - time_at(rate, bytes)); };
  const bool fences = chunking.protocol == Protocol::simple;
  const auto fenced = [&](Time latency) { return fences ? latency : 0; };
  const auto inside = [&](Time latency) {
    const Time before_wire = std::max<Time>(0, latency - endpoint_.delay_inside(leg.source, leg.destination));
    const Time late = beyond(std::max(pass, time_at(chunking.store_rate, bytes)), chunking.local_rate);
    const bool by_lines = tree && leg.passed_on && !fences;
    return Hop{before_wire + (by_lines ? 0 : late), fenced(latency) + late};
  };
  switch (endpoint_.reach(leg.source, leg.destination)) {
    case Reach::scale_up:
      return inside(tree ? costs.hop_latency_nvlink_tree : costs.hop_latency_nvlink_ring);
    case Reach::pcie:
      return inside(tree ? costs.hop_latency_pcie_tree : costs.hop_latency_pcie_ring);
    case Reach::scale_out: {
      const Time whole = tree ? costs.hop_latency_net_tree : costs.hop_latency_net_ring;
      const Time latency = pat ? pat_step(whole) : whole;
      return {latency + pass, fenced(latency) + beyond(pass, chunking.nic_rate)};
    }
    case Reach::self:
    case Reach::ideal:
      break;
  }
  return {};
}

Time LatencyModel::proxy(Protocol protocol, std::uint32_t source, std::uint32_t destination) const {
  const bool net = endpoint_.reach(source, destination) == Reach::scale_out;
  return net ? parameters_.of(protocol).hop_latency_net_ring : 0;
}

}  // namespace netsim
