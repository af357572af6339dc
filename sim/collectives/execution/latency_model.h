// LatencyModel: the latencies of the collective library besides the network, from NCCL's cost model
// (src/graph/tuning.cc). A collective of s steps takes base + s * hop + bytes / bandwidth.
//
// The base latency lies between a rank's start of a collective and its first step, after the launch of the
// kernel. Point-to-point has no base latency and no launch. The hop latency delays each message that a step
// hands to the endpoint. It stands for all costs of a step besides bytes: flags, fences, the proxy thread and
// the reduction.
//
// Both latencies depend on the protocol and on the algorithm's cost family. The hop latency also depends on
// whether it stays within a host. There, and over NVLinks between hosts, it covers the whole hop, as NCCL's
// authors measured it. The latency of the links themselves is then a part of it.
//
// Between hosts the latency of the fabric is added, because fabrics differ. An ideal network and a raw
// transfer have none of these latencies.
//
// A thread block processes one slice after the other. It waits for the peer's flag, moves the bytes, waits
// for them with a fence and sets its own flag (prims_simple.h). So protocol Simple also costs the hop latency
// between two slices of a connection. LL and LL128 have no fence, and their threads continue with the next
// line at once.
//
// A thread block moves data no faster than a block of threads can (Chunking::block_rate). Within a host it
// writes into the peer's memory itself, so this rate counts where it is lower than that of the links. The
// same holds for the rate at which all blocks together can write there (Chunking::store_rate). Over the
// network the proxy and the NIC take a slice when the block has put all of it into its buffer.
//
// Lines of LL and LL128 that a tree passes on within a host are forwarded as they arrive (prims_ll.h,
// prims_ll128.h). The block's time for them counts where they start, and from there on as the least time to
// the next chunk. In a ring the block is busy with the chunk before. There NCCL's cost model counts each
// step's latency and bytes.
//
// PAT has the latencies of the cost model. They are one for each rank's chunk and one for the collective. A
// step between hosts takes a part of the network's latency.
#pragma once

#include "sim/collectives/algorithm.h"
#include "sim/collectives/execution/chunking.h"
#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/execution/communication.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class LatencyModel {
 public:
  LatencyModel(const CollectivesParameters& parameters, const Endpoint& endpoint)
      : parameters_(parameters), endpoint_(endpoint) {}
  // Returns the base latency with the launch, for a group of two or more members.
  Time base(const CommunicationRequest& request, Protocol protocol, CostFamily family, Reach farthest) const;
  struct Hop {
    Time latency = 0;
    Time gap = 0;  // least time without bytes between two messages of the connection
  };
  // Returns how long a GPU's proxy thread takes to post a message to the network (getNetOverhead in
  // src/graph/tuning.cc). It posts one message after the other. The hop latency already includes the posting
  // of a single message.
  Time posting(Protocol protocol) const {
    return parameters_.net_overhead * (protocol == Protocol::simple ? 3 : 1);
  }
  struct Leg {
    std::uint32_t source = 0, destination = 0;  // GPUs
    bool passed_on = false;                     // whether a step passes the message on when it arrives
  };
  // Returns the hop latency of a message of `bytes` from GPU to GPU.
  Hop hop(const CommunicationRequest& request, const Chunking& chunking, CostFamily family, const Leg& leg,
          Bytes bytes) const;
  // Returns the latency of a message that a proxy forwards from one GPU to another.
  Time proxy(Protocol protocol, std::uint32_t source, std::uint32_t destination) const;

 private:
  const CollectivesParameters& parameters_;
  const Endpoint& endpoint_;
};

}  // namespace netsim
