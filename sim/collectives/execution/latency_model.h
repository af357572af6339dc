// LatencyModel: what the collective library costs besides the network, as NCCL's cost model has it
// (src/graph/tuning.cc): a collective of s steps takes base + s * (hop + wire latency) + bytes / bandwidth.
//
// The base latency passes from a rank's start of a collective to its first step; point-to-point has
// none. The hop latency passes from each message that a step sends to the endpoint; it stands for everything
// that a step costs besides bytes (flags, fences, the proxy thread, the reduction). Both depend on the
// algorithm's cost family, and the hop on whether it stays within a host. An ideal network and a raw transfer
// have neither.
#pragma once

#include "sim/collectives/algorithm.h"
#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/execution/communication.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class LatencyModel {
 public:
  LatencyModel(const CollectivesParameters& parameters, const Endpoint& endpoint)
      : parameters_(parameters), endpoint_(endpoint) {}
  Time base(const CommunicationRequest& request, CostFamily family, Reach farthest) const;
  // From GPU to GPU.
  Time hop(const CommunicationRequest& request, CostFamily family, std::uint32_t source,
           std::uint32_t destination) const;

 private:
  const CollectivesParameters& parameters_;
  const Endpoint& endpoint_;
};

}  // namespace netsim
