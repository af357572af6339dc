// What NCCL's kernels over a fabric that adds up have in common (sharp, collnet_chain): what can be
// configured of them, and how they run.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/grouping.h"
#include "sim/collectives/plan.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"

namespace netsim {

struct CollnetParameters : HostGroupParameters {
  Time base_latency = 0;
  Time hop_latency = 0;      // of each message within a host
  Time hop_latency_net = 0;  // of each that goes up a tree
  Bytes chunk = 0;
  std::int64_t slots = 8;
};

// `P` derives from CollnetParameters. `name`: as NCCL's tuning.cc has the algorithm; `of_chunk`: what the
// documentation says of it besides.
template <class P>
Parameters<P> collnet_parameters(const std::string& name, const std::string& of_chunk) {
  const Range<Time> latency{0, kSecond};
  return Parameters<P>()
      .integer("group", &P::group, {0, 1 << 20},
               std::string("ranks of a host, which follow each other") + P::kZeroMeans)
      .time("base_latency", &P::base_latency, latency, "before the first step")
      .time("hop_latency", &P::hop_latency, latency,
            "of each message within a host (NCCL tuning.cc hwLatencies, NVLINK " + name + ")")
      .time("hop_latency_net", &P::hop_latency_net, latency,
            "of each message that goes up a tree, besides the network's own time until its sum is back (NCCL "
            "tuning.cc hwLatencies, NET " +
                name + ")")
      .bytes("chunk", &P::chunk, {64, kGibibyte}, "largest message" + of_chunk + "; less for small buffers")
      .integer("slots", &P::slots, {kSlots, 1 << 20},
               "messages of a connection that the receiver has room for (NCCL_STEPS)");
}

// `at_once`: messages that are on their way together, of an operation of `bytes`. Where fewer than 64, 8 or 1
// of them would come for each, they are halved, to 128, 64 and 32 KiB (calcCollChunking in NCCL's
// src/enqueue.cc).
inline KernelModel collnet_kernels(const CollnetParameters& parameters, Bytes bytes, Bytes at_once) {
  Bytes chunk = parameters.chunk;
  for (const auto& [fewest, most] : {std::pair<Bytes, Bytes>{64, 128}, {8, 64}, {1, 32}}) {
    const Bytes smallest = most * kKibibyte;
    while (bytes < fewest * at_once * chunk && chunk > smallest) chunk /= 2;
  }
  return KernelModel{.base_latency = parameters.base_latency,
                     .hop_latency = parameters.hop_latency,
                     .hop_latency_net = parameters.hop_latency_net,
                     .channels = 1,
                     .chunk = chunk,
                     .slots = static_cast<std::uint32_t>(parameters.slots)};
}

}  // namespace netsim
