// The section `collectives` of the configuration: the algorithm of each kind, and what NCCL costs. Defaults
// are the constants of NCCL 2.30, src/graph/tuning.cc, for its Simple protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "sim/collectives/collective_kind.h"
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

struct CollectivesParameters : AlgorithmNodes<std::make_index_sequence<kCollectiveKindCount>> {
  // baseLatencies and hwLatencies, column Simple.
  Time base_latency_ring = 8'400 * kNanosecond;
  Time base_latency_tree = 8'400 * kNanosecond;
  Time hop_latency_nvlink_ring = 3'400 * kNanosecond;
  Time hop_latency_nvlink_tree = 4'000 * kNanosecond;
  Time hop_latency_pcie_ring = 5'700 * kNanosecond;
  Time hop_latency_pcie_tree = 4 * kMicrosecond;
  Time hop_latency_net_ring = 14 * kMicrosecond;
  Time hop_latency_net_tree = 14 * kMicrosecond;
  // A100 with NVSwitch: 12 NVLinks, 2 channels each; 4 channels keep one 200 Gb/s NIC busy.
  std::int64_t scale_up_channels = 24;
  std::int64_t scale_out_channels = 4;
  // NCCL's protocol Simple: a buffer of 4 MiB has NCCL_STEPS = 8 slots of 512 KiB; a chunk of a ring is 4 of
  // them and travels as 2 slices (ALLREDUCE_CHUNKSTEPS, ALLREDUCE_SLICESTEPS in src/include/device.h), so
  // that 8 / 2 slices fit. A slice is at least 1 / 32 of the largest one (src/device/prims_simple.h).
  Bytes slice = kMebibyte;
  std::int64_t slices_per_chunk = 2;
  Bytes least_slice = 32 * kKibibyte;
  std::int64_t slots = 4;
};

const Parameters<CollectivesParameters>& collectives_parameters();

// The section, checked. ConfigError.
CollectivesParameters parse_collectives(const ConfigNode& section);

}  // namespace netsim
