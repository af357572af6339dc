#include "sim/collectives/library/nccl/host_latencies.h"

namespace netsim {

std::optional<HostLatencies> host_latencies(GpuGeneration generation) {
  constexpr Time kNs = kNanosecond;
  switch (generation) {
    case GpuGeneration::volta:
      break;
    case GpuGeneration::ampere:
      return HostLatencies{.ll_hop = 1'050 * kNs,
                           .several_blocks = 1'600 * kNs,
                           .ll128_hop = 1'500 * kNs,
                           .simple_hop = 9'900 * kNs,
                           .slice = 4'000 * kNs,
                           .chunk = 4'700 * kNs,
                           .kept = 700 * kNs,
                           .group = 2'200 * kNs,
                           .peer = 200 * kNs};
    case GpuGeneration::hopper:
      return HostLatencies{.start = -2'000 * kNs,
                           .ll_hop = 780 * kNs,
                           .several_blocks = 200 * kNs,
                           .simple_hop = 5'200 * kNs,
                           .slice = 1'300 * kNs,
                           .chunk = 1'300 * kNs,
                           .kept = 700 * kNs,
                           .group = 850 * kNs,
                           .peer = 200 * kNs};
    case GpuGeneration::blackwell:
      return HostLatencies{.ll_hop = 1'250 * kNs,
                           .several_blocks = 700 * kNs,
                           .simple_hop = 10'100 * kNs,
                           .slice = 500 * kNs,
                           .chunk = 500 * kNs,
                           .kept = 700 * kNs,
                           .group = 850 * kNs,
                           .peer = 200 * kNs};
  }
  return std::nullopt;
}

void set_host_latencies(StepCosts& costs, const HostKernel& kernel, const CollectivesParameters& parameters) {
  const std::optional<HostLatencies> known = host_latencies(kernel.generation);
  if (!known) return;
  const Protocol protocol = kernel.protocol;
  const ProtocolParameters by_nccl = nccl_parameters(protocol), &given = parameters.of(protocol);
  const bool simple = protocol == Protocol::simple, ring = kernel.peers == 0;
  if (given.base_latency_ring == by_nccl.base_latency_ring) {
    if (!simple || !ring) costs.base += known->start;
    if (!ring) costs.base += known->group + known->peer * kernel.peers;
    if (protocol == Protocol::ll && kernel.channels > 1) costs.base += known->several_blocks;
  }
  if (given.hop_latency_nvlink_ring != by_nccl.hop_latency_nvlink_ring) return;
  if (protocol == Protocol::ll) costs.hop_nvlink = known->ll_hop;
  if (protocol == Protocol::ll128 && known->ll128_hop > 0) costs.hop_nvlink = known->ll128_hop;
  if (!simple) return;
  costs.slice = ring ? known->slice : known->chunk;
  costs.slice_each_round = !ring;
  if (!ring) return;
  costs.hop_nvlink = known->simple_hop;
  costs.kept = known->kept;
}

Time nvls_hop(Time on_hopper, std::optional<GpuGeneration> generation) {
  if (generation != GpuGeneration::blackwell) return on_hopper;
  return on_hopper * host_latencies(GpuGeneration::blackwell)->ll_hop /
         host_latencies(GpuGeneration::hopper)->ll_hop;
}

}  // namespace netsim
