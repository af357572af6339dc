// StepCosts: the times of a communication besides its bytes on the wire, as a library gives them to the
// executor. A collective of s steps takes base + s * hop + bytes / bandwidth, as in NCCL's cost model
// (src/graph/tuning.cc).
//
// A hop stands for all costs of a step besides bytes: flags, fences, the proxy thread and the reduction.
// Within a host, and over NVLinks between hosts, it covers the whole hop, with the latency of the links
// themselves. Between hosts the latency of the fabric is added, because fabrics differ.
#pragma once

#include <cstdint>

#include "sim/collectives/library/collectives_parameters.h"
#include "sim/collectives/protocol.h"
#include "sim/core/units.h"

namespace netsim {

struct StepCosts {
  Time base = 0;  // from a rank's start to its first step, the launch of the kernel included
  // Latency of each message, by what joins its GPUs.
  Time hop_nvlink = 0, hop_pcie = 0, hop_net = 0;
  // How long a GPU's proxy thread takes to post a message to the network. It posts one after the other.
  // `hop_net` already includes the posting of a single message.
  Time posting = 0;
  // Whether a thread block waits for the bytes of a message with a fence before it continues. The latency
  // then also counts between two messages of a connection.
  bool fences = false;
  // Time that a thread block takes for each message by NVLink besides its bytes, where this is known. It then
  // replaces the fence of `fences` within a host, which another warp waits for. 0: not known.
  Time slice = 0;
  // Whether `slice` counts in every round. Otherwise bytes of other channels hide it after the first one.
  bool slice_each_round = false;
  // Time besides `slice` that a thread block takes for a message whose data it also stores in its GPU's own
  // buffer. The message leaves later by this time, too.
  Time kept = 0;
  // Whether a step passes on lines within a host as they arrive, before it has received all of them.
  bool passes_lines = false;
};

// LatencyRow: which latencies of the section `collectives` an algorithm has.
enum class LatencyRow : std::uint8_t { ring, tree, pat };

// Returns the costs by the section's parameters, for a group of `ranks` that a network joins. A communication
// that is no `collective` has no base.
//
// PAT has one latency for the collective with one for each rank's chunk, and a part of the network's latency
// for a step between hosts. Lines of LL and LL128 that a tree passes on within a host are forwarded as they
// arrive (prims_ll.h, prims_ll128.h in NCCL).
StepCosts step_costs(const CollectivesParameters& parameters, LatencyRow row, Protocol protocol,
                     std::size_t ranks, bool collective);

}  // namespace netsim
