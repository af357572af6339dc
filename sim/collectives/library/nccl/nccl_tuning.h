// NCCL's cost model (src/graph/tuning.cc, 2.30). It estimates the time of a collective by each algorithm and
// protocol, and so chooses both and the number of channels. Latencies come from the section `collectives`,
// bandwidths from NCCL's tables.
//
// It only chooses: the time of the chosen protocol is simulated. So the model's caps on bandwidth (llMaxBws,
// perChMaxRingLL128Bws, perChMaxNVLSTreeBws, ...) decide where protocols change and slow nothing down. Only
// thread_block_rate() derives from them the measured rate of a multiprocessor.
#pragma once

#include <optional>
#include <span>

#include "sim/collectives/library/collectives_parameters.h"
#include "sim/collectives/library/communicator_layout.h"
#include "sim/collectives/library/nccl/nccl_traits.h"

namespace netsim {

// TuningCase: one collective, as the model sees it.
struct TuningCase {
  CollectiveKind kind = CollectiveKind::all_reduce;
  CostFamily family = CostFamily::ring;
  Bytes bytes = 0;
  std::uint32_t ranks = 2;
  std::uint32_t nodes = 1;  // number of NVLink or PCIe domains
  // Channels of the search's graph; the library runs twice as many.
  std::uint32_t channels = 1;
  bool nvlink = true;  // whether NVLink joins the GPUs of a node
  // GB/s of all channels together, the model's bus bandwidth. For aggregation in switches it is that within a
  // node.
  double bandwidth = 0;
  double bandwidth_between = 0;  // GB/s between nodes, for aggregation in switches
  std::uint32_t heads = 1;       // for CollNet: GPUs of a node that have their own NIC
  bool nvswitches = false;       // whether NVSwitches join the GPUs of a node
  GpuGeneration generation = GpuGeneration::ampere;
  bool grace = false;  // whether the hosts' CPUs are NVIDIA's own (GB200), not x86
};

// Returns the estimate in microseconds; nullopt where NCCL does not use the protocol.
std::optional<double> estimated_time(const TuningCase& one, Protocol protocol,
                                     const CollectivesParameters& parameters);

// Estimate: the protocol with the lowest time; of equal ones the first.
struct Estimate {
  Protocol protocol = Protocol::simple;
  double microseconds = 0;
};
// Returns the best estimate; nullopt where NCCL uses none of `protocols`.
std::optional<Estimate> best_estimate(const TuningCase& one, std::span<const Protocol> protocols,
                                      const CollectivesParameters& parameters);

// Returns on how many of `channels` NCCL runs the operation. Small operations run on fewer channels, so that
// each thread and each channel has work (src/enqueue.cc: threadThresholds, MinTrafficPerChannel).
std::uint32_t tuned_channels(const TuningCase& one, Protocol protocol, std::uint32_t channels);

// Returns the rate at which a thread block moves data, which is a property of the multiprocessor. NCCL's
// tables give what a channel of its search, run by two thread blocks, reached on one node, two and more
// (perChMaxTreeBws, perChMaxRingLL128Bws, perChMaxTreeLL128Bws). The highest of the three counts, because
// lower ones are limited by the links, which are simulated. In trees the rate is half, because bytes pass a
// thread block twice, up and down.
//
// For Simple the tables' figures include the fence between two chunks of 512 KiB (LatencyModel), as with
// NCCL's 4 MiB of buffer. It is subtracted. Rings with Simple and LL have no such table. They are assumed to
// move as much on the wire as a tree does with both its blocks and directions. For LL the figure of one node
// counts, where blocks store into other GPUs.
BitRate thread_block_rate(CostFamily family, Protocol protocol, GpuGeneration generation);

// Returns the rate at which a thread block moves data by Simple within a host, in rings and in sends and
// receives. It includes the fences between chunks, as NCCL's tables do. As for copies of NVLS
// (nvls_kernels.h), it is half of the lesser of the trees' figures for one node and two.
//
// It is 11.8 GB/s on A100, 19.35 on H100 and 21.4 on B200. Measured all-to-alls of two B200 confirm it: 16
// thread blocks move 345 GB/s.
BitRate simple_rate_inside(GpuGeneration generation);

// Returns the rate on the wire at which all thread blocks of a GPU store into the memories of other GPUs.
// `local_rate` is the rate of its links. For trees it is half, because they store both up and down. 0: as
// much as the links carry.
//
// On A100 lines of LL128, which the sender always stores, get 0.6 of the links: 12 of a link's 25 GB/s. With
// Simple the receiver reads and gets 20 GB/s (ncclTopoCheckP2p: reads on Ampere alone, because they were
// measured to be faster; NCCL's issue 512).
//
// Measured: 16 MiB take 108.7 us longer than 8 MiB on 8 A100-SXM4-40GB with NVSwitch, which is 135 GB/s of
// data. The source is nccl-tests, in place, in Hetu-Galvatron's tests/profiler/test_hardware_profile.py. The
// cause is not published. Stores of 32 bytes, each with a flit of header and one of answer, would get half of
// a link.
BitRate store_rate(BitRate local_rate, CostFamily family, Protocol protocol, GpuGeneration generation);

// Returns the bandwidth in GB/s that the model assumes for a ring, a tree (and so PAT) or NVLS on the group's
// links and NICs. It counts 12 of each 12.5 GB/s of a NIC's rate (src/graph/topo.h, NET_BW). On two nodes a
// tree counts its bandwidth within a node, up to twice that of the NICs (pass 2 of ncclTopoCompute in
// src/graph/search.cc).
//
// NVLS counts a channel for each member that is a head. Its speed is one that the search tries, and a head's
// links carry one channel more than there are heads. NVLS tree, and NVLS with CollNet, count the same with
// the speeds that the search tries where NICs matter.
double model_bandwidth(const CommunicatorLayout& layout, CostFamily family, GpuGeneration generation);
// Returns the bandwidth in GB/s between nodes of an NVLS tree: that of its NICs, but at most twice its
// bandwidth within a node.
double nvls_tree_bandwidth_between(const CommunicatorLayout& layout, GpuGeneration generation);
// Returns the share that NVLS gets of its ports' efficiency (topology/host_links.h, nvls_efficiency) in a
// group with GPUs that are no heads. It is the part of the links that the search has found for heads. A
// head's links carry one channel more than there are heads.
double nvls_share(const CommunicatorLayout& layout, GpuGeneration generation);
// Returns the number of heads, each of which has a channel.
std::uint32_t nvls_heads(const CommunicatorLayout& layout);

// CollnetGraph: the result of CollNetDirect's search. It finds a channel for each GPU of a node that is a
// head, because it has a NIC (8 at the most, NCCL_MAX_DIRECT_ARITY + 1). Where channels are fast and few it
// finds two for each (ncclTopoDupChannels in src/graph/search.cc). `between` is a channel's bandwidth by the
// NICs, `inside` that within a node, up to twice as much (pass 2 of ncclTopoCompute).
struct CollnetGraph {
  std::uint32_t heads = 1, channels = 1;
  double inside = 0, between = 0;  // GB/s of a channel
};
CollnetGraph collnet_direct_graph(const CommunicatorLayout& layout, GpuGeneration generation);

// SearchChannels: the channels of a group over several domains.
struct SearchChannels {
  std::uint32_t search = 1;   // channels of NCCL's search, which its cost model counts
  std::uint32_t library = 2;  // channels that run
};
// Returns the channels that NCCL's search finds and the library runs. The search finds a channel for each
// ring. Where a channel has 25 GB/s and more it makes two of it, at half the speed. Since Hopper it does so
// below 50 GB/s for up to four channels only (ncclTopoDupChannels in src/graph/search.cc, 2.30). Before
// Hopper PCIe gives a channel less than 25 GB/s.
//
// The library runs each channel twice. Since Hopper it doubles them again where a channel has more than 45
// GB/s and fewer than 16 would run (ncclTopoPostset in src/graph/connect.cc). The search does not double the
// channels of a graph that a file gives.
SearchChannels search_channels(const CommunicatorLayout& layout, std::optional<GpuGeneration> generation);

}  // namespace netsim
