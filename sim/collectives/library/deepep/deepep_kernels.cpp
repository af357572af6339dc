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
    kernels.base_latency = 2 * (parameters.hop_latency_net + parameters.hop_latency);
    kernels.block_rate = parameters.warp_rate;
  } else if (load.ranks > 1) {
    const double connections = static_cast<double>(parameters.channels) * (load.ranks - 1.0);
    kernels.block_rate =
        static_cast<BitRate>(static_cast<double>(load.local_rate) * parameters.nvlink_share / connections);
  }
  return kernels;
}

KernelModel low_latency_kernels(const LowLatencyParameters& parameters, const KernelLoad& load) {
  return KernelModel{.base_latency = parameters.base_latency,
                     .hop_latency = parameters.hop_latency,
                     .hop_latency_net = parameters.hop_latency_net,
                     .apart = true,
                     .chunk = load.token};
}

}  // namespace netsim
