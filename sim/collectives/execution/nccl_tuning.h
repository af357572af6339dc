// NCCL's cost model (src/graph/tuning.cc, 2.30): what it believes that a collective takes by each algorithm
// and protocol, and so which one it uses, on how many channels. The latencies are those of the section
// `collectives`, the bandwidths the tables' own.
//
// It is a choice and no timing: what the chosen protocol takes is simulated. So the model's caps on bandwidth
// (llMaxBws, perChMaxRingLL128Bws, perChMaxNVLSTreeBws, ...) decide where protocols change and slow nothing
// down. Only thread_block_rate() takes from them what a multiprocessor was seen to do.
#pragma once

#include <optional>
#include <span>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/execution/communicator_layout.h"

namespace netsim {

// One collective, as the model sees it.
struct TuningCase {
  CollectiveKind kind = CollectiveKind::all_reduce;
  CostFamily family = CostFamily::ring;
  Bytes bytes = 0;
  std::uint32_t ranks = 2;
  std::uint32_t nodes = 1;  // what NVLink or PCIe joins
  // Of the search's graph; the library runs twice as many.
  std::uint32_t channels = 1;
  bool nvlink = true;  // within a node
  // GB/s of all channels together: the model's bus bandwidth; of what switches do within a node...
  double bandwidth = 0;
  double bandwidth_between = 0;  // ... and between nodes
  std::uint32_t heads = 1;       // of CollNet: GPUs of a node that have a NIC of their own
  bool nvswitches = false;       // within a node
  GpuGeneration generation = GpuGeneration::ampere;
  bool grace = false;  // the hosts' CPUs are NVIDIA's own (GB200), and not of x86
};

// Microseconds; nothing where NCCL does not use the protocol.
std::optional<double> estimated_time(const TuningCase& one, Protocol protocol,
                                     const CollectivesParameters& parameters);

// The protocol that takes least; of equal ones the first.
struct Estimate {
  Protocol protocol = Protocol::simple;
  double microseconds = 0;
};
// Nothing where NCCL uses none of `protocols`.
std::optional<Estimate> best_estimate(const TuningCase& one, std::span<const Protocol> protocols,
                                      const CollectivesParameters& parameters);

// On how many of `channels` NCCL runs the operation: small ones on fewer, so that each thread and each
// channel has something to do (src/enqueue.cc: threadThresholds, MinTrafficPerChannel).
std::uint32_t tuned_channels(const TuningCase& one, Protocol protocol, std::uint32_t channels);

// Returns what a thread block moves of data, which is a property of the multiprocessor. NCCL's tables have
// what a channel of its search, run by two thread blocks, reached on one node, two and more (perChMaxTreeBws,
// perChMaxRingLL128Bws, perChMaxTreeLL128Bws). The highest of the three counts: what is less is the links'
// doing, which are simulated. In trees it is half, because bytes pass a thread block twice, up and down.
//
// By Simple the tables' figures have the fence between two chunks of 512 KiB (LatencyModel) in them, as
// NCCL's 4 MiB of buffer have it. It is taken out. Rings by Simple and LL have no such table. They are
// assumed to move as much on the wire as a tree does with both its blocks and ways. By LL the figure of one
// node counts, where blocks store into other GPUs.
BitRate thread_block_rate(CostFamily family, Protocol protocol, GpuGeneration generation);

// What all thread blocks of a GPU store into the memories of others, on the wire, of what its links carry; in
// trees half of that each, up and down. 0: as much as these. On A100 lines of LL128, which the sender always
// stores, get 0.6: 12 of a link's 25 GB/s, where by Simple the receiver reads and gets 20
// (ncclTopoCheckP2p: reads on Ampere alone, because they were seen to be faster; NCCL's issue 512). Measured:
// 16 MiB take 108.7 us longer than 8 on 8 A100-SXM4-40GB with NVSwitch (nccl-tests, in place, in
// Hetu-Galvatron's tests/profiler/test_hardware_profile.py), 135 GB/s of data. Why is not published; stores
// of 32 bytes, each with a flit of header and one of answer, would get half of a link.
BitRate store_rate(BitRate local_rate, CostFamily family, Protocol protocol, GpuGeneration generation);

// What a group's links give a ring, a tree (and so PAT) or NVLS, on as many rings or chains as it has. Of a
// NIC's rate the model takes 12 GB/s of each 12.5 (src/graph/topo.h, NET_BW). On two nodes a tree counts what
// its channels get within a node, up to twice what they get of the NICs (pass 2 of ncclTopoCompute in
// src/graph/search.cc). NVLS counts a channel for each member that is a head, at a speed that the search
// knows and a head's links carry once more than there are heads. NVLS tree, and NVLS with CollNet, count the
// same of what speeds there are where NICs matter...
double model_bandwidth(const CommunicatorLayout& layout, CostFamily family, GpuGeneration generation);
// ... and this between nodes: as much as its NICs give, but at most twice what it has within one.
double nvls_tree_bandwidth_between(const CommunicatorLayout& layout, GpuGeneration generation);
// Returns the share that NVLS gets of its ports' efficiency (topology/host_links.h, nvls_efficiency) in a
// group with GPUs that are no heads. It is the part of the links that the search has found for heads, whose
// own links carry one more than there are.
double nvls_share(const CommunicatorLayout& layout, GpuGeneration generation);
// Channels of all of them.
std::uint32_t nvls_heads(const CommunicatorLayout& layout);

// What CollNetDirect's search finds: a channel for each GPU of a node that is a head, because it has a NIC
// (8 at the most, NCCL_MAX_DIRECT_ARITY + 1), or two for each where channels are fast and few
// (ncclTopoDupChannels in src/graph/search.cc); what each gets of the NICs, and what it is found to have
// within a node then, up to twice that (pass 2 of ncclTopoCompute).
struct CollnetGraph {
  std::uint32_t heads = 1, channels = 1;
  double inside = 0, between = 0;  // GB/s of a channel
};
CollnetGraph collnet_direct_graph(const CommunicatorLayout& layout, GpuGeneration generation);

// The channels of a group over several domains.
struct SearchChannels {
  std::uint32_t search = 1;   // channels of NCCL's search, which its cost model counts
  std::uint32_t library = 2;  // channels that run
};
// The search finds a channel for each ring. Where a channel has 25 GB/s and more it makes two of it, at half
// the speed. Since Hopper it does so below 50 GB/s for up to four channels only (ncclTopoDupChannels in
// src/graph/search.cc, 2.30). Before Hopper PCIe gives a channel less than 25 GB/s.
// The library runs each channel twice. Since Hopper it doubles them again where a channel has more
// than 45 GB/s and fewer than 16 would run (ncclTopoPostset in src/graph/connect.cc).
// The search does not double the channels of a graph that a file gives.
SearchChannels search_channels(const CommunicatorLayout& layout, std::optional<GpuGeneration> generation);

// Returns the generation of a GPU by its model's name in the configuration, such as a100_80gb. Where that is
// not known, its compute capability decides (90: Hopper). Nothing: neither is known.
std::optional<GpuGeneration> generation_of(const std::string& gpu_model, std::int64_t compute_capability = 0);

}  // namespace netsim
