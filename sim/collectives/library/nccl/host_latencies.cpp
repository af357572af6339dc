#include "sim/collectives/library/nccl/host_latencies.h"

namespace netsim {

std::optional<HostLatencies> host_latencies(GpuGeneration generation) {
  constexpr Time kNs = kNanosecond;
  switch (generation) {
    case GpuGeneration::volta:
      break;
    case GpuGeneration::ampere:
      return HostLatencies{0, 1'050 * kNs, 7'500 * kNs, 4'700 * kNs, 700 * kNs, 2'200 * kNs, 200 * kNs};
    case GpuGeneration::hopper:
      return HostLatencies{-2'000 * kNs, 780 * kNs, 6'500 * kNs, 1'300 * kNs,
                           700 * kNs,    850 * kNs, 200 * kNs};
    case GpuGeneration::blackwell:
      return HostLatencies{0, 1'250 * kNs, 10'100 * kNs, 500 * kNs, 700 * kNs, 850 * kNs, 200 * kNs};
  }
  return std::nullopt;
}

void set_host_latencies(StepCosts& costs, Protocol protocol, GpuGeneration generation, std::uint32_t peers,
                        const CollectivesParameters& parameters) {
  const std::optional<HostLatencies> known = host_latencies(generation);
  if (!known) return;
  const ProtocolParameters by_nccl = nccl_parameters(protocol), &given = parameters.of(protocol);
  if (given.base_latency_ring == by_nccl.base_latency_ring)
    costs.base += known->start + (peers > 0 ? known->group + known->peer * peers : 0);
  if (given.hop_latency_nvlink_ring != by_nccl.hop_latency_nvlink_ring) return;
  if (protocol == Protocol::ll) costs.hop_nvlink = known->ll_hop;
  if (protocol != Protocol::simple) return;
  costs.slice = known->slice;
  costs.slice_each_round = peers > 0;
  if (peers > 0) return;
  costs.hop_nvlink = known->simple_hop;
  costs.kept = known->kept;
}

Time nvls_hop(Time on_hopper, std::optional<GpuGeneration> generation) {
  if (generation != GpuGeneration::blackwell) return on_hopper;
  return on_hopper * host_latencies(GpuGeneration::blackwell)->ll_hop /
         host_latencies(GpuGeneration::hopper)->ll_hop;
}

}  // namespace netsim
