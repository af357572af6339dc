// The number of channels that NCCL gives sends and receives (src/graph/paths.cc, 2.30: ncclTopoGetNchannels,
// ncclTopoComputeP2pChannelsPerPeer, ncclTopoComputeP2pChannels). Also the GPU by which a message leaves its
// host (PXN: ncclTopoGetNetDev in src/graph/search.cc, ncclTopoComputePaths).
#pragma once

#include <cstdint>
#include <optional>

#include "sim/collectives/library/collectives_parameters.h"
#include "sim/collectives/library/communicator_layout.h"
#include "sim/transport/endpoint.h"

namespace netsim {

struct PeerChannels {
  std::uint32_t all = 1;       // p2pnChannels: for all peers together
  std::uint32_t per_peer = 1;  // p2pnChannelsPerPeer
};

// Returns the channels of a group of `ranks`. Each peer has as many channels as the peer with the fewest.
// Within a host that is two for each NVLink that leads from a GPU through switches to another one. It is two
// over a single NVLink, another GPU or PCIe. Between hosts it is two. Where GPUs sit beside their CPUs
// without a PCIe switch, it is one for each NIC and for each 14 GB/s of them (NCCL_P2P_PER_CHANNEL_NET_BW).
//
// All peers together have the channels of the rings, twice those of the search, or `inside` in a single host.
// Both numbers are powers of two. Between hosts a peer has fewer where the peers, 8 at a time on a channel,
// would not fit. `generation` is nullopt where the speed of an NVLink is not known.
PeerChannels peer_channels(const CommunicatorLayout& layout, std::uint32_t ranks, std::uint32_t inside,
                           std::optional<GpuGeneration> generation);

// Returns the same by the section's parameters.
PeerChannels peer_channels_of(std::size_t ranks, const CollectivesParameters& parameters,
                              const CommunicatorLayout& layout);

// Size of a chunk of a message over NVLink, in bytes (NCCL_P2P_NVL_CHUNKSIZE).
inline constexpr Bytes kPointToPointChunk = 512 * kKibibyte;
// Size of a step of LL's buffer, in bytes on the wire (NCCL_LL_MAX_NTHREADS * NCCL_LL_LINES_PER_THREAD * 16).
inline constexpr Bytes kPointToPointLlStep = 64 * kKibibyte;
// Returns on how many channels a message of `bytes` runs within a host, in a group of `ranks`. It has the
// channels of a peer, but no more than let all peers run at once on channels of their own. A channel has at
// least an eighth of `step`, which is a chunk of Simple. Where it would have more than 32 chunks, the message
// has more channels (calcP2pChannelCount in src/enqueue.cc).
std::uint32_t message_channels(const PeerChannels& peers, std::uint32_t ranks, Bytes bytes,
                               Bytes step = kPointToPointChunk);

// Point-to-point messages of up to this size use LL (NCCL_P2P_LL_THRESHOLD).
inline constexpr Bytes kPointToPointLl = 16 * kKibibyte;

// Returns the GPU in the sender's host to which `source` writes its messages for `destination`, and by whose
// NIC they leave. It has the receiver's number in its host. kNoIndex: messages leave by the sender's own NIC,
// because both are in one host, on one rail, or no NVLink leads to that GPU.
std::uint32_t pxn_gpu(const Endpoint& endpoint, std::uint32_t source, std::uint32_t destination);

}  // namespace netsim
