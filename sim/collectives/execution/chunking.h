// Chunking: how the buffer of a communication is cut into messages. The executor sends by it, and prediction
// counts by it.
//
// A buffer is shared out evenly to channels. The bytes of a channel are sent in the fewest rounds whose
// chunks have at most `slices` slices each. Every round is one pass through the plan's steps, over 1 / rounds
// of the channel's bytes.
//
// So channel c carries share(bytes, channels, c), round r of R carries share(that, R, r), and chunk k of it
// is share(that, chunks, k). A channel without bytes does not run.
//
// The chunks of a step travel as slices_of() messages. So a step that passes data on sends the first slice
// while the next one still arrives, as NCCL's primitives do (src/device/prims_simple.h there). A message has
// at least one byte of data: the flag of an empty chunk still travels. The bytes that protocols LL and LL128
// add on the wire are part of the message.
//
// A receiver has room for `slots` messages of each connection. For each message that it has taken out, it
// sends a credit to the sender. A credit is another message, of kCreditBytes.
//
// A group that spans hosts runs a chain of messages per channel, each on queue pair (channel mod queue
// pairs). Within a host NCCL's 24 channels (A100 with NVSwitch) move in lockstep, each with 1 / 24 of the
// port. They are simulated together, as messages of up to 24 slices, which gives the same times.
//
// Where GPUs are joined by direct links, channels on different rings take different routes
// (communicator_layout.h). The channels of each ring are then simulated together as one channel. With
// `channels_apart` each channel has its own messages there too.
//
// In an all_to_all_v each block has its own size. A channel has its share of each block. In each round a step
// takes `slices` whole slices of its block, as long as there are that many. So a thread block has the rounds
// of its largest block. A step whose block is finished has no message, at both ends.
//
// Tokens are never split between channels or messages. Data that a host forwards is sent in the rounds in
// which it arrived. Each round then carries the same fraction of the forwarded data as of the whole.
//
// The two trees of NCCL's tree have a channel each, so one pass through such a plan is two channels. Its
// chunks are at most one of the 8 steps of a connection's buffer. They are smaller where few of them would
// pass through the chain of ranks (calcCollChunking in src/enqueue.cc).
//
// On an ideal network there is one channel, one round and no limit of slots. A raw transfer is one message.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/execution/communication.h"
#include "sim/collectives/execution/communicator_layout.h"
#include "sim/collectives/plan.h"
#include "sim/core/units.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// Bytes of a credit. For each message that they have room for, NCCL's receivers write an element of a queue
// of its InfiniBand plug-in. The element is ncclIbSendFifo of src/transport/net_ib.cc, which is aligned to 64
// bytes.
inline constexpr Bytes kCreditBytes = 64;

struct Chunking {
  std::uint32_t channels = 1;
  Bytes slice = 0;           // bytes of the largest message of one channel; 0: unlimited
  std::uint32_t slices = 1;  // messages that a step's chunks are cut into
  Bytes least_slice = 1;    // chunks are cut into fewer messages where these would have fewer bytes than this
  std::uint32_t slots = 0;  // messages of a connection that the receiver has room for; 0: unlimited
  bool slots_of_chunks = false;  // a slot holds all chunks of a step instead of one message
  Protocol protocol = Protocol::simple;
  // Rates of bytes on the wire. `block_rate` is what the thread blocks of a message move. `store_rate` is
  // what they store of it into the memory of other GPUs. `local_rate` and `nic_rate` are those of the links
  // within a host and of a NIC. 0: not known.
  BitRate block_rate = 0, store_rate = 0, local_rate = 0, nic_rate = 0;
  bool operator==(const Chunking&) const = default;
};

// ChunkingInput: what decides how a buffer is cut, besides its size and the parameters.
struct ChunkingInput {
  Reach farthest = Reach::self;  // reach from the first member to the farthest one
  Protocol protocol = Protocol::simple;
  std::uint32_t channels = 1;
  std::uint32_t rings = 1;    // rings that the channels use in turn
  bool as_tree = false;       // whether the plan is of RankOrder::chains
  std::uint32_t ranks = 2;    // ranks of the group
  std::uint32_t domains = 1;  // domains of the group
};
Chunking chunking_of(const CommunicationRequest& request, const CollectivesParameters& parameters,
                     const ChunkingInput& cutting);

// Steps of a connection's buffer (NCCL_STEPS).
inline constexpr std::int64_t kBufferSteps = 8;

// Returns the rounds of a channel that carries `channel_bytes`; 0 bytes have 0 rounds.
std::uint64_t rounds_of(const Plan& plan, const Chunking& chunking, Bytes channel_bytes);

// CountedShare: the part of a step's data that one channel carries, in kinds with counts.
struct CountedShare {
  Bytes bytes = 0;  // whole slices in all rounds but the last
  std::uint64_t rounds = 0;
  // For data that is sent with all that its owner has for a host (Counted::as_host). `part` is the bytes of
  // this data and `all` those for the host, over all channels. This channel's share of `all` is `bytes` and
  // begins at `begin`. Each round carries the same fraction of `part` as of `all`.
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
