#include "sim/collectives/library/nccl/tree_chunks.h"

#include <bit>

#include "sim/collectives/library/chunking.h"

namespace netsim {
namespace {

std::uint32_t levels_of(std::uint32_t domains) {
  return static_cast<std::uint32_t>(std::bit_width(domains)) - 1;
}

// Halves a chunk while the channel has fewer than `wanted` chunks and the chunk is above `least`.
void halve(Bytes& chunk, Bytes channel_bytes, double wanted, Bytes least) {
  const auto count = [&] { return channel_bytes / chunk; };  // counts whole chunks
  while (static_cast<double>(count()) < wanted && chunk > least) chunk /= 2;
}

// Returns the chunk of a tree. With Simple the wanted number of chunks is the number in flight at once. The
// rule for LL128 is NCCL's, found by experiment.
Bytes cut_step(Bytes step, Bytes channel_bytes, Protocol protocol, const TreeGroup& group) {
  const std::uint32_t levels = levels_of(group.domains);
  if (protocol == Protocol::simple) {
    const std::uint32_t depth = group.ranks / group.domains - 1 + levels;
    halve(step, channel_bytes, 8 * depth, 128 * kKibibyte);
    halve(step, channel_bytes, 4 * depth, 64 * kKibibyte);
    halve(step, channel_bytes, depth, 32 * kKibibyte);
  } else if (protocol == Protocol::ll128) {
    const double each = static_cast<double>(group.ranks) / group.domains;
    const double steps = 1 + levels + 0.1 * each;
    step = step / 15 * 16;  // with its flags
    halve(step, channel_bytes, steps * 64 / each, 128 * kKibibyte);
    halve(step, channel_bytes, steps * 16 / each, 32 * kKibibyte);
    step = step / 16 * 15;
  }
  return step;
}

}  // namespace

Bytes tree_chunk(const ProtocolParameters& parameters, Protocol protocol, Bytes channel_bytes,
                 const TreeGroup& group) {
  const Bytes step =
      parameters.slots == 0 ? parameters.slice : parameters.slice * parameters.slots / kBufferSteps;
  return cut_step(step, channel_bytes, protocol, group);
}

}  // namespace netsim
