// The common part of NCCL's kernels for a fabric that aggregates (sharp, collnet_chain): their parameters and
// KernelModel.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sim/collectives/algorithms/grouping.h"
#include "sim/collectives/library/kernel_model.h"
#include "sim/collectives/plan.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"

namespace netsim {

struct CollnetParameters : HostGroupParameters {
  Time base_latency = 0;
  Time hop_latency = 0;      // latency of each message within a host
  Time hop_latency_net = 0;  // latency of each message that goes up a tree
  Bytes chunk = 0;
  std::int64_t slots = 8;
};

// Returns the parameters of `P`, which derives from CollnetParameters. `name` is the algorithm's name in
// NCCL's tuning.cc. `of_chunk` is added to the documentation of `chunk`.
template <class P>
Parameters<P> collnet_parameters(const std::string& name, const std::string& of_chunk) {
  const Range<Time> latency{0, kSecond};
  return Parameters<P>()
      .integer("group", &P::group, {0, 1 << 20},
               std::string("ranks of a host, with consecutive numbers") + P::kZeroMeans)
      .time("base_latency", &P::base_latency, latency, "latency before the first step")
      .time("hop_latency", &P::hop_latency, latency,
            "latency of each message within a host (NCCL tuning.cc hwLatencies, NVLINK " + name + ")")
      .time("hop_latency_net", &P::hop_latency_net, latency,
            "latency of each message that goes up a tree, besides the network's own time until its sum is "
            "back (NCCL tuning.cc hwLatencies, NET " +
                name + ")")
      .bytes("chunk", &P::chunk, {64, kGibibyte}, "largest message" + of_chunk + "; less for small buffers")
      .integer("slots", &P::slots, {kSlots, 1 << 20},
               "messages of a connection that the receiver can buffer (NCCL_STEPS)");
}

// Returns the KernelModel of an operation of `bytes`. `at_once` is the number of messages in flight together.
// Messages are halved, down to 128, 64 and 32 KiB, where fewer than 64, 8 or 1 would come for each of these.
// The source is calcCollChunking in NCCL's src/enqueue.cc.
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
