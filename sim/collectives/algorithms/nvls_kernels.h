// What NCCL's kernels for NVLink SHARP have in common: channels, heads, and what a thread block copies.
//
// - channels: 16 on Hopper; on Blackwell 32, and 24 where one NVLink domain is the whole group (NCCL 2.27 and
//   later, src/transport/nvls.cc).
// - heads: 32 at the most (NCCL_MAX_NVLS_ARITY).
// - copies: a thread block scatters what its GPU contributes into buffers that switches read, and gathers
// what
//   they have written into buffers; a group of its warps does each. NCCL's tables have 38.7 GB/s for a thread
//   block that passes on a tree's data on Hopper (src/graph/tuning.cc, perChMaxTreeBws), of which each half
//   of its 16 warps has one direction; eight warps scatter here and seven gather (src/device/all_reduce.h):
//   half of that each. Blackwell's table says 70, for links of twice the rate; what limits copies within a
//   GPU is how many loads a warp has in flight, which are as many on both (COLL_UNROLL), and a GB200 NVL72 is
//   measured to have Hopper's rate (docs/validation.md): so both have that.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/collectives/gpu_generation.h"
#include "sim/core/units.h"

namespace netsim {

inline constexpr std::uint32_t kMostNvlsHeads = 32;

// Of a group in so many domains; a GPU that is not known is taken for a Hopper.
constexpr std::uint32_t nvls_channels(std::optional<GpuGeneration> generation, std::uint32_t domains) {
  constexpr std::uint32_t kHopper = 16, kBlackwellInside = 24, kBlackwell = 32;
  if (generation != GpuGeneration::blackwell) return kHopper;
  return domains == 1 ? kBlackwellInside : kBlackwell;
}

// What a head takes from the switches goes back to them line by line (multimem.ld_reduce and multimem.st in
// one loop), and here in so many messages of a chunk.
inline constexpr std::uint32_t kNvlsMessages = 4;

// Of each group of warps that copies, on one channel.
inline constexpr BitRate kNvlsCopyRate = 38'700'000'000 * 8 / 2;

}  // namespace netsim
