// What NCCL's kernels for NVLink SHARP have in common, within a domain (nvls) and over several (nvls_tree).
//
// - channels: 16 on Hopper; on Blackwell 32, and 24 where one NVLink domain is the whole group (NCCL 2.27 and
//   later, src/transport/nvls.cc).
// - heads: 32 at the most (NCCL_MAX_NVLS_ARITY).
// - latencies: NCCL's model charges 25 us for a whole collective on NVLink, whatever its kind (tuning.cc,
//   hwLatencies, NVLS and NVLS_TREE). Of these each of an all-reduce's two messages that follow from each
//   other takes a hop, for which the model has no figure with NVLS and 3.7 us with CollNetDirect, whose
//   kernels are the same with the network in place of the switch; the rest passes before the first one.
// - chunk: NCCL_NVLS_CHUNKSIZE, 128 KiB, and less where few of them would come for each channel and head
//   (src/enqueue.cc). NCCL_STEPS = 8 of them fit.
// - copies: a thread block scatters what its GPU contributes into buffers that switches read, and gathers
//   what they have written into buffers; a group of its warps does each. NCCL's tables have the bus bandwidth
//   of a thread block that passes on a tree's data (src/graph/tuning.cc, perChMaxTreeBws), half of which goes
//   down it, by eight warps (runTreeSplit in src/device/all_reduce.h). Eight warps scatter here and seven
//   gather, and of eight that send one only posts (src/device/prims_simple.h, nworkers), so that seven copy
//   in all three: as much each. On one node such a block writes into other GPUs, on two it also copies within
//   its own memory for the NIC, as all do here: the lesser of both figures, 38.7 GB/s on Hopper and 42.8 on
//   Blackwell.
// - copies over several hosts: wherever a tree goes on up, five of a block's 20 warps reduce and four pass
// the
//   result down. Six are left to scatter and five to gather (all_reduce.h, NVLS_TREE). So five copy, which
//   limits two hosts: nvls_tree_copy_rate().
// - ports: NCCL counts its efficiency (topology/host_links.h) of what its search finds for heads, at speeds
//   that it knows. Where each GPU is a head, five to eight H100 get the same of their ports within 1 %
//   (NCCL's issue 1455: 258, 265, 270 and 273 GB/s, times 1 + 1/n), whatever those speeds are. Where 64 or 72
//   GPUs have 32 heads they get what the search counts: 33 speeds of 20 GB/s of 721.8 GB/s
//   (docs/evidence/validation.md; nvls_share in execution/nccl_tuning.h).
// - pause: a group copies the chunks of all heads, meets at a barrier, and only then are the flags set and
//   those of the next round waited for (prims_simple.h, ScatterGatherOp). So protocol Simple costs a copying
//   group what it costs every thread block between two slices (execution/latency_model.h): a hop's latency.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sim/collectives/algorithm.h"
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

// Returns what each group of warps copies on one channel, within one domain.
constexpr BitRate nvls_copy_rate(std::optional<GpuGeneration> generation) {
  constexpr BitRate kHopper = 38'700'000'000 * 8 / 2, kBlackwell = 42'800'000'000 * 8 / 2;
  return generation == GpuGeneration::blackwell ? kBlackwell : kHopper;
}

// Returns what five warps copy on one channel of an NVLS tree, on any number of nodes. NCCL's tables have
// 57.7 GB/s of bus bandwidth for a head on two nodes of Hopper (perChMaxNVLSTreeBws). With eight heads and 16
// channels that is 15.4 GB/s of data a channel, or 68.1 us for all heads' chunks of 128 KiB. Without the
// pause of 3.7 us it is 16.27 GB/s.
//
// Blackwell's 96 GB/s are those of its NICs. There it is five of the seven warps that copy within a domain.
constexpr BitRate nvls_tree_copy_rate(std::optional<GpuGeneration> generation) {
  constexpr BitRate kHopper = 16'270'000'000 * 8;
  return generation == GpuGeneration::blackwell ? nvls_copy_rate(generation) / 7 * 5 : kHopper;
}

// What can be configured of them.
struct NvlsParameters {
  Time base_latency = 17'600 * kNanosecond;
  Time hop_latency = 3'700 * kNanosecond;
  std::int64_t channels = 0;  // 0: nvls_channels()
  Bytes chunk = 128 * kKibibyte;
  std::int64_t slots = 8;
  bool copies = true;
  static constexpr const char* kCopiesDoc =
      "whether copying into NCCL's buffers and out of them takes time; false: as with buffers that are "
      "registered";
};

// Where fewer than so many chunks of the size before would come for each channel and head, a chunk is no
// larger than that.
struct NvlsChunkLimit {
  Bytes fewest, most;
};

// The kernels of one collective.
struct NvlsShape {
  std::uint32_t domains = 1;
  std::uint32_t heads = 1;                 // of a domain
  std::uint32_t scatters = 1;              // thread blocks of a rank that copy into buffers
  std::uint32_t trees = 1;                 // each has as many of the channels
  BitRate copy_rate = 0;                   // of a group of warps that copies, on one channel
  Bytes chunk = 0;                         // at most...
  std::span<const NvlsChunkLimit> limits;  // ... and by each of these in turn
};
KernelModel nvls_kernels(const NvlsParameters& parameters, const CollectiveAlgorithm::Load& load,
                         const NvlsShape& shape);

}  // namespace netsim
