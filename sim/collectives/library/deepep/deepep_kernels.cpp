#include "sim/collectives/library/deepep/deepep_kernels.h"

namespace netsim {

KernelModel deepep_kernels(const DeepepKernelParameters& parameters, const KernelLoad& load) {
  KernelModel kernels{.base_latency = parameters.hop_latency,
                      .hop_latency = parameters.hop_latency,
                      .hop_latency_net = parameters.hop_latency_net,
                      .channels = static_cast<std::uint32_t>(parameters.channels),
                      .apart = true,
                      .chunk = parameters.chunk * load.token,
                      .slots = static_cast<std::uint32_t>(parameters.buffer / parameters.chunk)};
  if (load.several_hosts) {
    const bool combines = load.kind == CollectiveKind::combine;
    kernels.base_latency = 2 * (parameters.hop_latency_net + parameters.hop_latency);
    kernels.block_rate = combines ? parameters.combine_warp_rate : parameters.warp_rate;
    kernels.local_buffer = parameters.nvl_buffer * load.token;
    kernels.net_rate = (combines ? parameters.combine_host_rate : parameters.host_rate) / load.domains;
  } else if (load.ranks > 1) {
    const double connections = static_cast<double>(parameters.channels) * (load.ranks - 1.0);
    kernels.block_rate =
        static_cast<BitRate>(static_cast<double>(load.local_rate) * parameters.nvlink_share / connections);
  }
  return kernels;
}

KernelModel low_latency_kernels(const LowLatencyParameters& parameters, const KernelLoad& load) {
  const BitRate stored =
      load.kind == CollectiveKind::combine ? parameters.combine_local_rate : parameters.local_rate;
  return KernelModel{.base_latency = parameters.base_latency,
                     .hop_latency = parameters.hop_latency,
                     .hop_latency_net = parameters.hop_latency_net,
                     .apart = true,
                     .chunk = load.token,
                     .store_rate = stored};
}

}  // namespace netsim
