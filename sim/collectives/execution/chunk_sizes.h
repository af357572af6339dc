// The messages of a communication, by its plan and its Chunking (library/chunking.h): rounds, messages of a
// step and their sizes. The executor sends by them, and prediction counts by them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/execution/communication.h"
#include "sim/collectives/library/channel_orders.h"
#include "sim/collectives/library/chunking.h"
#include "sim/collectives/plan.h"
#include "sim/core/units.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// Bytes of a credit. For each message that they have room for, NCCL's receivers write an element of a queue
// of its InfiniBand plug-in. The element is ncclIbSendFifo of src/transport/net_ib.cc, which is aligned to 64
// bytes.
inline constexpr Bytes kCreditBytes = 64;

// Returns the rounds of a channel that carries `channel_bytes`; 0 bytes have 0 rounds.
std::uint64_t rounds_of(const Plan& plan, const Chunking& chunking, Bytes channel_bytes);

// CountedShare: the part of a step's data that one channel carries, in kinds with counts.
struct CountedShare {
  Bytes bytes = 0;  // whole slices in all rounds but the last
  std::uint64_t rounds = 0;
  // For data that is sent with all that its owner has for a host (Counted::What::block_of_host). `part` is
  // the bytes of this data and `all` those for the host, over all channels. This channel's share of `all` is
  // `bytes` and begins at `begin`. Each round carries the same fraction of `part` as of `all`.
  Bytes part = 0, all = 0, begin = 0;  // all: 0 for data that is sent by itself
};
CountedShare share_of_counted(const Plan& plan, const Chunking& chunking, const BlockCounts& counts,
                              std::uint32_t rank, const Step& step, std::uint32_t channel);
// Returns the bytes sent in round `round` of a share, and the number of messages for so many bytes; both may
// be 0.
Bytes counted_in_round(const Chunking& chunking, const CountedShare& share, Bytes token, std::uint64_t round);
std::uint32_t slices_of_counted(const Chunking& chunking, Bytes bytes);

// Returns the number of messages of a step of `count` chunks in a round over `round_bytes`. It is the same at
// both ends.
std::uint32_t slices_of(const Plan& plan, const Chunking& chunking, Bytes round_bytes, std::uint32_t count);

// Returns the bytes on the wire of message `index` of a step with `slices` messages and `bytes` of data.
constexpr Bytes slice_bytes(Protocol protocol, Bytes bytes, std::uint32_t slices, std::uint32_t index) {
  const Bytes slice = slices == 1 ? bytes : share(bytes, slices, index);
  return bytes_on_wire(protocol, slice > 0 ? slice : 1);
}

// ChunkSizes: the sizes of a step's messages over all channels and rounds, and how many have each size.
// Channels have at most two sizes and so have a channel's rounds. All chunks of a round are equal but for one
// byte. So the sizes are found by arithmetic and are few.
class ChunkSizes {
 public:
  struct Size {
    Bytes bytes = 0;  // > 0
    std::uint64_t count = 0;
  };

  // Sets the communication and its channels. Results are kept if both are the same as before.
  void open(const Plan& plan, const Chunking& chunking, const CommunicationRequest& request,
            const ChannelOrders::Channels& channels);
  // Returns the sizes of the messages of a step of `rank`; the step must send.
  const std::vector<Size>& of(std::uint32_t rank, const Step& step);
  // Returns the number of slots that a step of `rank` frees; the step must receive.
  std::uint64_t freed(std::uint32_t rank, const Step& step);

 private:
  static void add(std::vector<Size>& sizes, Bytes bytes, std::uint64_t count);
  void find_rounds();
  void find(std::vector<Size>& sizes, std::uint32_t rank, const Step& step) const;
  void find_counted(std::vector<Size>& sizes, std::uint32_t rank, const Step& step) const;
  Bytes share_of(Bytes bytes, std::uint32_t channel) const;

  const Plan* plan_ = nullptr;
  Chunking chunking_;
  Bytes bytes_ = 0;
  const BlockCounts* counts_ = nullptr;
  ChannelOrders::Channels channels_;
  std::vector<Size> rounds_;
  std::vector<std::vector<Size>> known_;  // sizes for one chunk, by piece
  std::vector<Size> several_;             // sizes for the last step of several chunks, or of a block
};

}  // namespace netsim
