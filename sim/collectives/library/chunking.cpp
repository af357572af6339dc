#include "sim/collectives/library/chunking.h"

#include <algorithm>

namespace netsim {

Chunking chunking_of(const CommunicationRequest& request, const CollectivesParameters& parameters,
                     const ChunkingInput& input) {
  if (request.raw || input.farthest == Reach::self || input.farthest == Reach::ideal) return {};
  const bool inside = input.farthest != Reach::scale_out;
  Chunking chunking;
  const bool together = inside && !parameters.channels_apart;
  chunking.channels = together ? std::min(input.rings, input.channels) : input.channels;
  const Bytes lanes = input.channels / chunking.channels;
  const ProtocolParameters& cut = parameters.of(input.protocol);
  chunking.slice = cut.slice;
  chunking.slices = static_cast<std::uint32_t>(cut.slices_per_chunk);
  chunking.least_slice = cut.least_slice;
  chunking.slots = static_cast<std::uint32_t>(cut.slots);
  chunking.protocol = input.protocol;
  if (input.chunk) {
    chunking.slice = *input.chunk;
    chunking.slices = 1;
    chunking.least_slice = 1;
    if (chunking.slots != 0) chunking.slots = static_cast<std::uint32_t>(kBufferSteps);
  }
  chunking.slice *= lanes;
  chunking.least_slice *= lanes;
  return chunking;
}

}  // namespace netsim
