// The section `collectives` of the configuration: the library, the algorithm of each kind and its costs.
// Defaults are the constants of NCCL 2.30: latencies of src/graph/tuning.cc, sizes of src/include/device.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/collectives/collective_kind.h"
#include "sim/collectives/gpu_generation.h"
#include "sim/collectives/protocol.h"
#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"
#include "sim/network/aggregation/number_format.h"

namespace netsim {

// AlgorithmNode: the user's setting for one kind's algorithm; null: the kind's default.
template <CollectiveKind kind>
struct AlgorithmNode {
  ConfigNode node;
};

// AlgorithmNodes: one AlgorithmNode for each line of kCollectiveKinds. Each is a base class, because a
// parameter is bound to a member.
template <class Kinds>
struct AlgorithmNodes;
template <std::size_t... kind>
struct AlgorithmNodes<std::index_sequence<kind...>> : AlgorithmNode<static_cast<CollectiveKind>(kind)>... {
  using Member = ConfigNode AlgorithmNodes::*;
  static Member member(CollectiveKind of) {
    static constexpr Member kMembers[] = {
        static_cast<Member>(&AlgorithmNode<static_cast<CollectiveKind>(kind)>::node)...};
    return kMembers[static_cast<std::size_t>(of)];
  }
};

// ProtocolParameters: the latencies of a protocol, and how its connections cut a buffer.
struct ProtocolParameters {
  // Latencies of NCCL's tables baseLatencies and hwLatencies.
  Time base_latency_ring = 0, base_latency_tree = 0;
  Time hop_latency_nvlink_ring = 0, hop_latency_nvlink_tree = 0;
  Time hop_latency_pcie_ring = 0, hop_latency_pcie_tree = 0;
  Time hop_latency_net_ring = 0, hop_latency_net_tree = 0;
  // Sizes in bytes of data, without flags; see chunking.h.
  Bytes slice = 0;
  std::int64_t slices_per_chunk = 1;
  Bytes least_slice = 1;
  std::int64_t slots = 0;
};

ProtocolParameters nccl_parameters(Protocol protocol);

// ProtocolSection: a protocol's parameters as a section, with NCCL's values as defaults.
template <Protocol protocol>
struct ProtocolSection : ProtocolParameters {
  ProtocolSection() : ProtocolParameters(nccl_parameters(protocol)) {}
};

// Returns the latency of a step of PAT, for a given latency between hosts (nccl/nccl_tuning.cpp).
template <class Number>
constexpr Number pat_step(Number latency) {
  return latency * 2 / 7;  // 1 / 3.5
}

struct CollectivesParameters : AlgorithmNodes<std::make_index_sequence<kCollectiveKindCount>>,
                               ProtocolSection<Protocol::simple> {
  ProtocolSection<Protocol::ll> ll;
  ProtocolSection<Protocol::ll128> ll128;
  // nullopt: the protocol that NCCL's cost model chooses, by size and group (nccl/nccl_tuning.h).
  std::optional<Protocol> protocol = Protocol::simple;
  // nullopt: the generation that the hosts report.
  std::optional<GpuGeneration> gpu_generation;
  // The number format of what collectives add; nullopt: any format, which all switches add.
  std::optional<NumberFormat> format;
  // Multicast groups that a communicator takes of the NVSwitches of each host or rack.
  std::int64_t nvls_groups = 2;
  // Algorithms by size and group (algorithm_choice.h).
  ConfigNode choices;
  // The library that decides how communications run (collective_library.h); null: `nccl`.
  ConfigNode library;
  // Rules with which users restrict NCCL's choice, and the node that names NCCL_GRAPH_FILE. The library
  // `nccl` reads them (nccl/nccl_settings.h).
  ConfigNode nccl_algo, nccl_proto, tuner, graph;
  // Time before the kernel of a collective runs. NCCL's tables omit it; its value is measured.
  Time launch_latency = 0;
  // Time that a GPU's proxy thread takes to post a message to the network (LatencyModel::posting()).
  Time net_overhead = 0;
  // Latency that the machine's network plug-in reports (ncclNetProperties_t::latency), for the cost model.
  Time plugin_latency = 0;
  // Latency of PAT besides its steps: a base, and a part for each rank (nccl/nccl_tuning.cpp).
  Time base_latency_pat = 8 * kMicrosecond, rank_latency_pat = 2'800 * kNanosecond;
  Time pat_latency(std::size_t ranks) const {
    return base_latency_pat + static_cast<Time>(ranks) * rank_latency_pat;
  }
  // Channels of a group within one host; nullopt: those of NCCL's search (scale_up_channels_of()). Four
  // channels keep one 200 Gb/s NIC busy.
  std::optional<std::int64_t> scale_up_channels;
  std::int64_t scale_out_channels = 4;
  // Whether all-gathers and broadcasts have one buffer for input and output. Otherwise a rank also stores its
  // own block.
  bool in_place = true;
  // The channels of a group within one host are not simulated together (chunking.h).
  bool channels_apart = false;

  // Returns the configured number of channels within a host, or NCCL's. Its search tries speeds of a channel.
  // On A100 it finds 6 of 40 GB/s, on H100 6 of 60 and on B200 8 of 90. It divides each into two and runs
  // each of these twice (sm90SpeedArrayIntra and its neighbours, ncclTopoDupChannels, ncclTopoPostset). An
  // unknown GPU counts as an A100.
  std::uint32_t scale_up_channels_of(std::optional<GpuGeneration> generation) const {
    constexpr std::int64_t kChannels = 24, kBlackwell = 32;
    return static_cast<std::uint32_t>(
        scale_up_channels.value_or(generation == GpuGeneration::blackwell ? kBlackwell : kChannels));
  }
  const ProtocolParameters& of(Protocol of_protocol) const;
};

const Parameters<CollectivesParameters>& collectives_parameters();

// Reads and checks the section. Throws ConfigError.
CollectivesParameters parse_collectives(const ConfigNode& section);

}  // namespace netsim
