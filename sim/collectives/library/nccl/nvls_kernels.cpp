#include "sim/collectives/library/nccl/nvls_kernels.h"

#include <algorithm>

#include "sim/collectives/library/nccl/host_latencies.h"

namespace netsim {
namespace {

// Returns the chunk size after all limits. `at_once` is the number of chunks in flight together.
Bytes chunk_of(const NvlsShape& shape, Bytes bytes, Bytes at_once) {
  Bytes chunk = shape.chunk;
  for (const NvlsChunkLimit& limit : shape.limits) {
    if (bytes < limit.fewest * at_once * chunk && chunk > limit.most) chunk = limit.most;
  }
  return chunk;
}

}  // namespace

KernelModel nvls_kernels(const NvlsParameters& parameters, const KernelLoad& load, const NvlsShape& shape) {
  const std::uint32_t channels = parameters.channels > 0 ? static_cast<std::uint32_t>(parameters.channels)
                                                         : nvls_channels(load.generation, shape.domains);
  // One pass through the plan uses a channel of each tree.
  const std::uint32_t passes = std::max(1U, channels / shape.trees);
  const BitRate copies = parameters.copies ? shape.copy_rate * shape.trees : 0;
  return KernelModel{.base_latency = parameters.base_latency,
                     .hop_latency = shape.domains == 1 ? nvls_hop(parameters.hop_latency, load.generation)
                                                       : parameters.hop_latency,
                     .channels = passes,
                     .thread_blocks = channels,
                     .chunk = chunk_of(shape, load.bytes, Bytes{channels} * shape.heads),
                     .messages = kNvlsMessages,
                     .slots = static_cast<std::uint32_t>(parameters.slots),
                     .copy_in_rate = copies / shape.scatters,
                     .copy_out_rate = copies,
                     .copy_pause = parameters.copies ? parameters.hop_latency : 0};
}

}  // namespace netsim
