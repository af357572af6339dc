#include "sim/collectives/execution/latency_model.h"

#include <algorithm>

namespace netsim {
namespace {

// Returns 0 where the rate is not known.
Time time_at(BitRate rate, Bytes bytes) { return rate == 0 ? 0 : transmission_time(bytes, rate); }

}  // namespace

Time LatencyModel::pass_time(const Chunking& chunking, const Leg& leg, Bytes bytes) {
  const bool twice = leg.own_block && leg.first_round && !chunking.own_block_exposed;
  return time_at(chunking.block_rate, bytes) + (twice ? time_at(chunking.first_copy_rate, bytes) / 2 : 0);
}

Time LatencyModel::own_block_time(const Chunking& chunking, const Leg& leg, Bytes bytes) {
  if (!leg.own_block || !chunking.own_block_exposed) return 0;
  return time_at(leg.first_round ? chunking.first_copy_rate : chunking.copy_rate, bytes) / 2;
}

LatencyModel::Hop LatencyModel::hop(const StepCosts& costs, const Chunking& chunking, const Leg& leg,
                                    Bytes bytes) const {
  const Time pass = pass_time(chunking, leg, bytes);
  // Returns how much longer it takes than the wire.
  const auto beyond = [&](Time time, BitRate rate) { return std::max<Time>(0, time - time_at(rate, bytes)); };
  const auto fenced = [&](Time latency) { return costs.fences ? latency : 0; };
  const auto inside = [&](Time latency) {
    const Time before_wire = std::max<Time>(0, latency - endpoint_.delay_inside(leg.source, leg.destination));
    const Time stored = time_at(chunking.store_rate, bytes), busy = std::max(pass, stored);
    const BitRate share = chunking.local_rate / chunking.sends_at_once;
    const Time late = beyond(busy, share);
    const bool by_lines = costs.passes_lines && leg.passed_on;
    if (chunking.rate_with_fences) {
      const Time kept = leg.kept ? costs.kept : 0, own = own_block_time(chunking, leg, bytes);
      const Time taken =
          costs.slice > 0 ? std::max(pass + own_time(costs, leg), stored) : std::max(busy, fenced(latency));
      return Hop{before_wire + kept + late + own, beyond(taken, share) + own};
    }
    return Hop{before_wire + (by_lines ? 0 : late), fenced(latency) + late};
  };
  switch (endpoint_.reach(leg.source, leg.destination)) {
    case Reach::scale_up:
      return inside(costs.hop_nvlink);
    case Reach::pcie:
      return inside(costs.hop_pcie);
    case Reach::scale_out:
      return {costs.hop_net + pass, fenced(costs.hop_net) + beyond(pass, chunking.nic_rate)};
    case Reach::self:
    case Reach::ideal:
      break;
  }
  return {};
}

Time LatencyModel::proxy(Protocol protocol, GpuId source, GpuId destination) const {
  const bool net = endpoint_.reach(source, destination) == Reach::scale_out;
  return net ? library_.forwarding_latency(protocol) : 0;
}

}  // namespace netsim
