// How many channels NCCL gives sends and receives (src/graph/paths.cc, 2.30: ncclTopoGetNchannels,
// ncclTopoComputeP2pChannelsPerPeer, ncclTopoComputeP2pChannels), and by which GPU what one rank sends
// another leaves a host (PXN: ncclTopoGetNetDev in src/graph/search.cc, ncclTopoComputePaths).
#pragma once

#include <cstdint>
#include <optional>

#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/execution/communicator_layout.h"
#include "sim/transport/endpoint.h"

namespace netsim {

struct PeerChannels {
  std::uint32_t all = 1;       // p2pnChannels: of all peers together
  std::uint32_t per_peer = 1;  // p2pnChannelsPerPeer
};

// Of a group of `ranks`. Each peer has the channels of the one that has least: two for each NVLink that a GPU
// has to another one of its host through switches, two over a single NVLink, another GPU or PCIe; between
// hosts two, or where GPUs sit beside their CPUs without a PCIe switch one for each NIC and for each 14 GB/s
// of them (NCCL_P2P_PER_CHANNEL_NET_BW). All have the channels of the rings, twice those of the search, or
// `inside` in a single host. Both are powers of two; between hosts a peer has fewer where the peers, 8 at a
// time on a channel, would not fit. `generation`: nothing where it is not known how fast an NVLink is.
PeerChannels peer_channels(const CommunicatorLayout& layout, std::uint32_t ranks, std::uint32_t inside,
                           std::optional<GpuGeneration> generation);

// The GPU in the sender's host to which `source` writes what goes to `destination`, and whose NIC it leaves
// by: the one of the receiver's number. kNoIndex: it leaves by the sender's own, because both are in one
// host, on one rail, or no NVLink leads there.
std::uint32_t pxn_gpu(const Endpoint& endpoint, std::uint32_t source, std::uint32_t destination);

}  // namespace netsim
