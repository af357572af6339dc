// The section `collectives` of the configuration: the algorithm of each kind, and what NCCL costs. Defaults
// are the constants of NCCL 2.30: latencies of src/graph/tuning.cc, sizes of src/include/device.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/collectives/collective_kind.h"
#include "sim/collectives/execution/nccl_graph.h"
#include "sim/collectives/execution/nccl_rules.h"
#include "sim/collectives/gpu_generation.h"
#include "sim/collectives/protocol.h"
#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"

namespace netsim {

// What the user wrote for one kind's algorithm; null: the kind's default.
template <CollectiveKind kind>
struct AlgorithmNode {
  ConfigNode node;
};

// An AlgorithmNode for each line of kCollectiveKinds: a base each, because a parameter is bound to a member.
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

// What a protocol costs besides bytes, and how its connections cut a buffer.
struct ProtocolParameters {
  // baseLatencies and hwLatencies.
  Time base_latency_ring = 0, base_latency_tree = 0;
  Time hop_latency_nvlink_ring = 0, hop_latency_nvlink_tree = 0;
  Time hop_latency_pcie_ring = 0, hop_latency_pcie_tree = 0;
  Time hop_latency_net_ring = 0, hop_latency_net_tree = 0;
  // Of data, without flags. See chunking.h.
  Bytes slice = 0;
  std::int64_t slices_per_chunk = 1;
  Bytes least_slice = 1;
  std::int64_t slots = 0;
};

ProtocolParameters nccl_parameters(Protocol protocol);

// As a section of its own, whose defaults are NCCL's.
template <Protocol protocol>
struct ProtocolSection : ProtocolParameters {
  ProtocolSection() : ProtocolParameters(nccl_parameters(protocol)) {}
};

// Of the latency between hosts what a step of PAT is charged (nccl_tuning.cpp).
template <class Number>
constexpr Number pat_step(Number latency) {
  return latency * 2 / 7;  // 1 / 3.5
}

struct CollectivesParameters : AlgorithmNodes<std::make_index_sequence<kCollectiveKindCount>>,
                               ProtocolSection<Protocol::simple> {
  ProtocolSection<Protocol::ll> ll;
  ProtocolSection<Protocol::ll128> ll128;
  // Nothing: what NCCL's cost model says, by size and group (nccl_tuning.h).
  std::optional<Protocol> protocol = Protocol::simple;
  // Nothing: what the hosts say that they have.
  std::optional<GpuGeneration> gpu_generation;
  // Algorithms by size and group (algorithm_choice.h).
  ConfigNode choices;
  // What users of NCCL say to its choice (nccl_rules.h): read from the three nodes.
  ConfigNode nccl_algo, nccl_proto, tuner;
  NcclRules rules;
  // NCCL_GRAPH_FILE: the node that names the file, and what is in it.
  ConfigNode graph;
  std::optional<NcclGraph> nccl_graph;
  // What a collective costs before its kernel runs. NCCL's tables leave it out; it is measured.
  Time launch_latency = 0;
  // What posting a message to the network costs the proxy thread of its GPU (LatencyModel::posting()).
  Time net_overhead = 0;
  // What the machine's network plug-in reports (ncclNetProperties_t::latency): for the cost model.
  Time plugin_latency = 0;
  // What PAT costs besides its steps, of so many ranks (nccl_tuning.cpp).
  Time base_latency_pat = 8 * kMicrosecond, rank_latency_pat = 2'800 * kNanosecond;
  Time pat_latency(std::size_t ranks) const {
    return base_latency_pat + static_cast<Time>(ranks) * rank_latency_pat;
  }
  // A100 with NVSwitch: 12 NVLinks, 2 channels each; 4 channels keep one 200 Gb/s NIC busy.
  std::int64_t scale_up_channels = 24;
  std::int64_t scale_out_channels = 4;
  // Those of a group within one host are not timed together (chunking.h).
  bool channels_apart = false;

  const ProtocolParameters& of(Protocol of_protocol) const;
};

const Parameters<CollectivesParameters>& collectives_parameters();

// The section, checked. ConfigError.
CollectivesParameters parse_collectives(const ConfigNode& section);

}  // namespace netsim
