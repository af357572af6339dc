#include "sim/collectives/execution/collectives_parameters.h"

#include <fmt/format.h>

#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/core/errors.h"

namespace netsim {
namespace {

using P = CollectivesParameters;

void add_algorithms(Parameters<P>& p) {
  for (const CollectiveKindInfo& info : kCollectiveKinds) {
    if (!is_collective(info.kind)) continue;
    p.component(info.name, P::member(info.kind), CollectiveAlgorithm::kComponentKind, info.default_algorithm,
                std::string("algorithm of ") + info.name);
  }
}

void add_latencies(Parameters<P>& p) {
  const Range<Time> latency{0, kSecond};
  p.time("base_latency_ring", &P::base_latency_ring, latency,
         "start of a ring, chain or pairwise collective (NCCL tuning.cc baseLatencies, Ring Simple)")
      .time("base_latency_tree", &P::base_latency_tree, latency,
            "start of a tree collective (NCCL tuning.cc baseLatencies, Tree Simple)")
      .time("hop_latency_nvlink_ring", &P::hop_latency_nvlink_ring, latency,
            "per step over NVLink, ring (NCCL tuning.cc hwLatencies, NVLINK Ring Simple); also "
            "point-to-point")
      .time("hop_latency_nvlink_tree", &P::hop_latency_nvlink_tree, latency,
            "per step over NVLink, tree (NCCL tuning.cc hwLatencies, NVLINK Tree Simple)")
      .time("hop_latency_pcie_ring", &P::hop_latency_pcie_ring, latency,
            "per step over the host's PCIe, ring (NCCL tuning.cc hwLatencies, PCI Ring Simple); also "
            "point-to-point")
      .time("hop_latency_pcie_tree", &P::hop_latency_pcie_tree, latency,
            "per step over the host's PCIe, tree (NCCL tuning.cc hwLatencies, PCI Tree Simple)")
      .time("hop_latency_net_ring", &P::hop_latency_net_ring, latency,
            "per step between hosts, ring (NCCL tuning.cc hwLatencies, NET Ring Simple); also point-to-point")
      .time("hop_latency_net_tree", &P::hop_latency_net_tree, latency,
            "per step between hosts, tree (NCCL tuning.cc hwLatencies, NET Tree Simple)");
}

void add_chunking(Parameters<P>& p) {
  const Range<std::int64_t> channels{1, 1024};
  p.integer("scale_up_channels", &P::scale_up_channels, channels,
            "channels of a group within one host (NCCL on A100 with NVSwitch: 24), timed together")
      .integer("scale_out_channels", &P::scale_out_channels, channels,
               "channels of a group on several hosts, each a message chain of its own")
      .bytes("slice", &P::slice, {kKibibyte, kGibibyte},
             "largest message of one channel (NCCL Simple: 4 MiB buffer / 8 steps x 2 steps a slice)")
      .integer(
          "slices_per_chunk", &P::slices_per_chunk, {1, 1024},
          "messages that a step's chunk travels as, one behind the other (NCCL Simple: 4 steps a chunk / 2)")
      .bytes("least_slice", &P::least_slice, {1, kGibibyte},
             "a chunk is not cut into smaller messages than this (NCCL Simple: 1/32 of the largest slice)")
      .integer("slots", &P::slots, {0, 1 << 20},
               "messages of a connection that its receiver has room for (NCCL Simple: 8 steps / 2 steps a "
               "slice); 0: any "
               "number, without credits");
}

}  // namespace

const Parameters<CollectivesParameters>& collectives_parameters() {
  static const auto declared = [] {
    Parameters<P> p;
    add_algorithms(p);
    add_latencies(p);
    add_chunking(p);
    return p;
  }();
  return declared;
}

CollectivesParameters parse_collectives(const ConfigNode& section) {
  CollectivesParameters parameters = collectives_parameters().parse(section);
  const std::int64_t least = kSlots * parameters.slices_per_chunk;
  if (parameters.slots != 0 && parameters.slots < least) {
    section.fail(
        fmt::format("slots: {} are too few for {} slices a chunk: rings need room for {} chunks (allowed: "
                    "{} and more)",
                    parameters.slots, parameters.slices_per_chunk, kSlots, least));
  }
  return parameters;
}

}  // namespace netsim
