// LatencyModel: how long the library delays a message besides the network, by the StepCosts of its
// communication.
//
// The hop latency delays each message that a step hands to the endpoint. The costs of a hop within a host
// include the latency of the links, which is subtracted, because the endpoint adds it.
//
// A thread block processes one slice after the other. It waits for the peer's flag, moves the bytes, waits
// for them with a fence and sets its own flag (prims_simple.h in NCCL). So protocol Simple also costs the hop
// latency between two slices of a connection. LL and LL128 have no fence, and their threads continue with the
// next line at once.
//
// A thread block moves data no faster than a block of threads can (Chunking::block_rate). Within a host it
// writes into the peer's memory itself, so this rate counts where it is lower than that of the links. The
// same holds for the rate at which all blocks together can write there (Chunking::store_rate). Over the
// network the proxy and the NIC take a slice when the block has put all of it into its buffer.
//
// Where lines are passed on as they arrive (StepCosts::passes_lines), the block's time for them counts where
// they start. From there on it counts as the least time to the next chunk. In a ring the block is busy with
// the chunk before, and NCCL's cost model counts each step's latency and bytes.
#pragma once

#include "sim/collectives/execution/chunk_sizes.h"
#include "sim/collectives/library/collective_library.h"
#include "sim/collectives/library/step_costs.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class LatencyModel {
 public:
  LatencyModel(const CollectiveLibrary& library, const Endpoint& endpoint)
      : library_(library), endpoint_(endpoint) {}
  struct Hop {
    Time latency = 0;
    Time gap = 0;  // least time without bytes between two messages of the connection
  };
  struct Leg {
    GpuId source, destination;
    bool kept = false;         // whether the step also stores the message's data in its own buffer
    bool own_block = false;    // whether that data is the rank's own block (Chunking::stores_own_block)
    bool passed_on = false;    // whether a step passes the message on when it arrives
    bool first_round = false;  // whether all channels are in step, so that nothing hides a block's own time
  };
  // Returns how long the thread blocks of a message of `bytes` move its bytes, without links. The own block
  // is stored a second time, which is half of a copy. After the first round other channels hide that.
  // Chunking::own_block_exposed leaves it to own_block_time().
  static Time pass_time(const Chunking& chunking, const Leg& leg, Bytes bytes);
  // Returns how long a thread block stores a message's own block beyond the time of the links.
  static Time own_block_time(const Chunking& chunking, const Leg& leg, Bytes bytes);
  // Returns how long a thread block takes for a message besides its bytes, where nothing hides that.
  static Time own_time(const StepCosts& costs, const Leg& leg) {
    if (!leg.first_round && !costs.slice_each_round) return 0;
    return costs.slice + (leg.kept ? costs.kept : 0);
  }
  // Returns the hop latency of a message of `bytes` from GPU to GPU.
  Hop hop(const StepCosts& costs, const Chunking& chunking, const Leg& leg, Bytes bytes) const;
  // Returns the latency of a message that a proxy forwards from one GPU to another.
  Time proxy(Protocol protocol, GpuId source, GpuId destination) const;

 private:
  const CollectiveLibrary& library_;
  const Endpoint& endpoint_;
};

}  // namespace netsim
