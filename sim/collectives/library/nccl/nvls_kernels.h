// The common part of NCCL's kernels for NVLink SHARP, within a domain (nvls) and over several (nvls_tree).
//
// - channels: 16 on Hopper. On Blackwell 32, and 24 where one NVLink domain is the whole group (NCCL 2.27 and
//   later, src/transport/nvls.cc).
// - heads: at most 32 (NCCL_MAX_NVLS_ARITY).
// - latencies: NCCL's model charges 25 us for a whole collective of any kind on NVLink (tuning.cc,
//   hwLatencies, NVLS and NVLS_TREE). An all-reduce has two dependent messages, each with a hop latency. The
//   model has no figure for it with NVLS. It has 3.7 us with CollNetDirect, whose kernels are the same with
//   the network in place of the switch. The rest is the base latency. Within one domain of Blackwell a hop
//   takes as much longer as one by LL does (host_latencies.h).
// - chunk: NCCL_NVLS_CHUNKSIZE, 128 KiB, and less where few chunks would come for each channel and head
//   (src/enqueue.cc). The buffer holds NCCL_STEPS = 8 of them.
// - copies: a thread block scatters its GPU's data into buffers that switches read, and gathers from buffers
//   that they have written. A group of its warps does each. NCCL's tables have the bus bandwidth of a thread
//   block that passes on a tree's data (src/graph/tuning.cc, perChMaxTreeBws). Half of it goes down the tree,
//   by eight warps (runTreeSplit in src/device/all_reduce.h).
// - warps: here eight warps scatter and seven gather. When eight send, one of them only posts
//   (src/device/prims_simple.h, nworkers), so that seven copy in all three cases, at the same rate. On one
//   node such a block writes into other GPUs. On two it also copies within its own memory for the NIC, as all
//   do here. The lesser of both figures counts: 38.7 GB/s on Hopper and 42.8 on Blackwell.
// - copies over several hosts: where a tree continues upwards, five of a block's 20 warps reduce and four
//   pass the result down. Six are left to scatter and five to gather (all_reduce.h, NVLS_TREE). So five copy,
//   which limits two hosts: nvls_tree_copy_rate().
// - ports: their efficiency (topology/host_links.h) applies to what NCCL's search finds for heads, at the
//   speeds that it tries. Where each GPU is a head, five to eight H100 get the same share of their ports
//   within 1 %, whatever those speeds are (NCCL's issue 1455: 258, 265, 270 and 273 GB/s, times 1 + 1/n).
//   Where 64 or 72 GPUs have 32 heads they get what the search counts: 33 speeds of 20 GB/s of 721.8 GB/s
//   (docs/evidence/validation.md; nvls_share in library/nccl/nccl_tuning.h).
// - pause: a group of warps copies the chunks of all heads and meets at a barrier. Only then does it set the
//   flags and wait for those of the next round (prims_simple.h, ScatterGatherOp). So protocol Simple costs it
//   a hop latency, as it costs every thread block between two slices (execution/latency_model.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sim/collectives/gpu_generation.h"
#include "sim/collectives/library/kernel_model.h"
#include "sim/core/units.h"

namespace netsim {

inline constexpr std::uint32_t kMostNvlsHeads = 32;

// Returns the channels of a group in so many domains. An unknown GPU counts as a Hopper.
constexpr std::uint32_t nvls_channels(std::optional<GpuGeneration> generation, std::uint32_t domains) {
  constexpr std::uint32_t kHopper = 16, kBlackwellInside = 24, kBlackwell = 32;
  if (generation != GpuGeneration::blackwell) return kHopper;
  return domains == 1 ? kBlackwellInside : kBlackwell;
}

// Messages of a chunk that a head receives from the switches and sends back. NCCL's kernel does this line by
// line (multimem.ld_reduce and multimem.st in one loop).
inline constexpr std::uint32_t kNvlsMessages = 4;

// Returns the rate at which each group of warps copies on one channel, within one domain.
constexpr BitRate nvls_copy_rate(std::optional<GpuGeneration> generation) {
  constexpr BitRate kHopper = 38'700'000'000 * 8 / 2, kBlackwell = 42'800'000'000 * 8 / 2;
  return generation == GpuGeneration::blackwell ? kBlackwell : kHopper;
}

// Returns the rate at which five warps copy on one channel of an NVLS tree, on any number of nodes. NCCL's
// tables have 57.7 GB/s of bus bandwidth for a head on two nodes of Hopper (perChMaxNVLSTreeBws). With eight
// heads and 16 channels that is 15.4 GB/s of data a channel, or 68.1 us for all heads' chunks of 128 KiB.
// Without the pause of 3.7 us it is 16.27 GB/s.
//
// Blackwell's 96 GB/s in these tables are those of its NICs. Its rate here is five sevenths of that within a
// domain, where seven warps copy.
constexpr BitRate nvls_tree_copy_rate(std::optional<GpuGeneration> generation) {
  constexpr BitRate kHopper = 16'270'000'000 * 8;
  return generation == GpuGeneration::blackwell ? nvls_copy_rate(generation) / 7 * 5 : kHopper;
}

// NvlsParameters: the parameters of the algorithms nvls and nvls_tree.
struct NvlsParameters {
  Time base_latency = 17'600 * kNanosecond;
  Time hop_latency = 3'700 * kNanosecond;
  std::int64_t channels = 0;  // 0: nvls_channels()
  Bytes chunk = 128 * kKibibyte;
  std::int64_t slots = 8;
  bool copies = true;
  static constexpr const char* kCopiesDoc =
      "whether copies into NCCL's buffers and out of them take time; false: buffers are registered, so "
      "nothing is copied";
};

// NvlsChunkLimit: a chunk has at most `most` bytes where fewer than `fewest` chunks of the size before would
// come for each channel and head.
struct NvlsChunkLimit {
  Bytes fewest, most;
};

// NvlsShape: the properties of one collective that decide its kernels.
struct NvlsShape {
  std::uint32_t domains = 1;
  std::uint32_t heads = 1;                 // heads of a domain
  std::uint32_t scatters = 1;              // thread blocks of a rank that copy into buffers
  std::uint32_t trees = 1;                 // trees, each with the same number of channels
  BitRate copy_rate = 0;                   // rate at which a group of warps copies on one channel
  Bytes chunk = 0;                         // largest chunk in bytes
  std::span<const NvlsChunkLimit> limits;  // limits that reduce the chunk, applied in turn
};
KernelModel nvls_kernels(const NvlsParameters& parameters, const KernelLoad& load, const NvlsShape& shape);

}  // namespace netsim
