// LatencyModel: what the collective library costs besides the network, as NCCL's cost model has it
// (src/graph/tuning.cc): a collective of s steps takes base + s * hop + bytes / bandwidth.
//
// The base latency passes from a rank's start of a collective to its first step, after what it costs to
// launch the kernel; point-to-point has neither. The hop latency passes from each message that a step sends
// to the endpoint; it stands for everything that a step costs besides bytes (flags, fences, the proxy thread,
// the reduction). Both depend on the protocol and on the algorithm's cost family, and the hop on whether it
// stays within a host. There, and over NVLinks between hosts, it is the whole of a hop, as NCCL's authors saw
// it on such links, so that what the links themselves take is a part of it; between hosts what the fabric
// takes comes on top, because fabrics differ. An ideal network and a raw transfer have none of them.
//
// A thread block does one slice after the other: it waits for the peer's flag, moves the bytes, sees them
// through by a fence and sets its own flag (prims_simple.h). So protocol Simple costs the hop latency between
// two slices of a connection, too. LL and LL128 have no fence, and their threads go on with the next line at
// once. It also moves no more bytes a second than a block of threads can (Chunking::block_rate): within a
// host, where it writes into the peer's memory itself, that counts where it is slower than the links, and so
// does what all blocks together can write there (Chunking::store_rate); over the network the proxy and the
// NIC take a slice when the block has put all of it into its buffer. Lines of LL and LL128 that a tree passes
// on within a host go on as they come in (prims_ll.h, prims_ll128.h), so that the block's time for them shows
// where they set out, and from there on as the least time to the next chunk.
// In a ring the block is busy with the chunk before: there NCCL's cost model counts each step's latency and
// bytes.
//
// PAT is charged what the cost model counts for it: something for each rank's chunk, once for a collective,
// and for a step between hosts a part of the network's latency.
#pragma once

#include "sim/collectives/algorithm.h"
#include "sim/collectives/execution/chunking.h"
#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/execution/communication.h"
#include "sim/transport/endpoint.h"

namespace netsim {

//
class LatencyModel {
 public:
  LatencyModel(const CollectivesParameters& parameters, const Endpoint& endpoint)
      : parameters_(parameters), endpoint_(endpoint) {}
  // Launch included; of a group of two and more.
  Time base(const CommunicationRequest& request, Protocol protocol, CostFamily family, Reach farthest) const;
  struct Hop {
    Time latency = 0;
    Time gap = 0;  // least time without bytes between two messages of the connection
  };
  // How long a GPU's proxy thread takes to post a message to the network (getNetOverhead in
  // src/graph/tuning.cc): it does one after the other, and the latency of a hop has it for a message alone.
  Time posting(Protocol protocol) const {
    return parameters_.net_overhead * (protocol == Protocol::simple ? 3 : 1);
  }
  struct Leg {
    std::uint32_t source = 0, destination = 0;  // GPUs
    bool passed_on = false;                     // by a step that receives it
  };
  // Of a message of `bytes` from GPU to GPU.
  Hop hop(const CommunicationRequest& request, const Chunking& chunking, CostFamily family, const Leg& leg,
          Bytes bytes) const;
  // Of a message that a proxy passes on from one GPU to another.
  Time proxy(Protocol protocol, std::uint32_t source, std::uint32_t destination) const;

 private:
  const CollectivesParameters& parameters_;
  const Endpoint& endpoint_;
};

}  // namespace netsim
