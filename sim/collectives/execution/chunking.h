// Chunking: how the buffer of a communication becomes messages. The executor sends by it, prediction counts
// by it.
//
// A buffer is shared out evenly to channels. A channel's bytes are sent in the fewest rounds whose chunks are
// at most `slices` slices each: every round is one pass through the plan's steps, over 1 / rounds of the
// channel's bytes. So channel c carries share(bytes, channels, c), round r of R carries share(that, R, r),
// and chunk k of it is share(that, chunks, k). A channel without bytes does not run. A step's chunks travel
// as slices_of() messages, so that a step that passes data on sends the first slice while the next one still
// arrives, as NCCL's primitives do (src/device/prims_simple.h there). A message has a byte of data at least:
// where a chunk is empty, its flag still travels. What protocols LL and LL128 add on the wire is part of the
// message.
//
// A receiver has room for `slots` messages of each connection. It tells the sender of each message that it
// has taken out, by a credit: another message, of kCreditBytes.
//
// A group that spans hosts runs a chain of messages per channel, each on queue pair (channel mod queue
// pairs). Within a host NCCL's 24 channels (A100 with NVSwitch) move in lockstep, each with 1 / 24 of the
// port; they are timed together, as messages of up to 24 slices, which gives the same times. Where GPUs are
// joined by links of their own, channels on different rings go different ways (communicator_layout.h): then
// those of a ring are timed together, and each ring is a channel here. With `channels_apart` each channel has
// messages of its own there too.
//
// Of an all_to_all_v each block has a size of its own. A channel has its share of each, and in each round a
// step takes `slices` whole slices of its block, while there is as much: so a thread block has the rounds of
// its largest block, and a step whose block is through has no message, at both ends. Of tokens channels and
// messages have whole ones. What a host forwards of what came there goes in the rounds in which that came, in
// each as large a part of it as of the whole.
//
// The two trees of NCCL's tree have a channel each, so one pass through such a plan is two channels. Its
// chunks are one of the 8 steps of a connection's buffer and less, the smaller the fewer there are of them
// for the ranks that they pass one behind the other (calcCollChunking in src/enqueue.cc). On an ideal network
// there is one channel, one round and no limit of slots, and a raw transfer is one message.
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

// What NCCL's receivers write to the sender for each message that there is room for: an element of the queue
// of its InfiniBand plug-in (src/transport/net_ib.cc, ncclIbSendFifo, which is aligned to 64 bytes).
inline constexpr Bytes kCreditBytes = 64;

struct Chunking {
  std::uint32_t channels = 1;
  Bytes slice = 0;               // the largest message of one channel; 0: unlimited
  std::uint32_t slices = 1;      // messages that a step's chunks are cut into...
  Bytes least_slice = 1;         // ... unless these are smaller than that
  std::uint32_t slots = 0;       // messages of a connection that the receiver has room for; 0: unlimited
  bool slots_of_chunks = false;  // no messages: of as many chunks as a step moves at a time
  Protocol protocol = Protocol::simple;
  // Of bytes on the wire: what the thread blocks of a message move, what of that they store into the memory
  // of others, and what the links within a host and a NIC carry. 0: not known.
  BitRate block_rate = 0, store_rate = 0, local_rate = 0, nic_rate = 0;
  bool operator==(const Chunking&) const = default;
};

// What decides how a buffer is cut, besides its size and the parameters.
struct ChunkingInput {
  Reach farthest = Reach::self;  // of a member from the first one
  Protocol protocol = Protocol::simple;
  std::uint32_t channels = 1;
  std::uint32_t rings = 1;    // that these take in turns
  bool as_tree = false;       // the plan is of RankOrder::chains...
  std::uint32_t ranks = 2;    // ... over a group of so many
  std::uint32_t domains = 1;  // in so many
};
Chunking chunking_of(const CommunicationRequest& request, const CollectivesParameters& parameters,
                     const ChunkingInput& cutting);

// Steps of a connection's buffer (NCCL_STEPS).
inline constexpr std::int64_t kBufferSteps = 8;

// Rounds of a channel that carries `channel_bytes`; 0 for none.
std::uint64_t rounds_of(const Plan& plan, const Chunking& chunking, Bytes channel_bytes);

// The same of kinds with counts: what a channel has of what a step of `rank` sends or receives.
struct CountedShare {
  Bytes bytes = 0;  // whole slices in all rounds but the last
  std::uint64_t rounds = 0;
  // Of what goes with all that its owner has for the host (Counted::as_host): the whole of both, over all
  // channels, and where this channel's share of the latter, which is `bytes`, begins. Of each piece of that
  // it has its part.
  Bytes part = 0, all = 0, begin = 0;  // all: 0 for what goes by itself
};
CountedShare share_of_counted(const Plan& plan, const Chunking& chunking, const BlockCounts& counts,
                              std::uint32_t rank, const Step& step, std::uint32_t channel);
// What goes in round `round` of it, and in how many messages so much goes, 0 for nothing.
Bytes counted_in_round(const Chunking& chunking, const CountedShare& share, Bytes token, std::uint64_t round);
std::uint32_t slices_of_counted(const Chunking& chunking, Bytes bytes);

// Messages of a step of `count` chunks in a round over `round_bytes`: the same at both ends.
std::uint32_t slices_of(const Plan& plan, const Chunking& chunking, Bytes round_bytes, std::uint32_t count);

// Bytes of message `index` of those, of a step that sends `bytes` of data.
constexpr Bytes slice_bytes(Protocol protocol, Bytes bytes, std::uint32_t slices, std::uint32_t index) {
  const Bytes slice = slices == 1 ? bytes : share(bytes, slices, index);
  return bytes_on_wire(protocol, slice > 0 ? slice : 1);
}

// How many messages of which size a step is, over all channels and rounds. Channels come in two sizes, a
// channel's rounds too, and all chunks of one round's size are alike but for a byte: so this is arithmetic,
// and few distinct sizes.
class ChunkSizes {
 public:
  struct Size {
    Bytes bytes = 0;  // > 0
    std::uint64_t count = 0;
  };

  // Of these channels of this communication; keeps what is known if it is the same as before.
  void open(const Plan& plan, const Chunking& chunking, const CommunicationRequest& request,
            const ChannelOrders::Channels& channels);
  // What a step of `rank` sends, of a kind that does.
  const std::vector<Size>& of(std::uint32_t rank, const Step& step);
  // Slots that a step of `rank`, of a kind that receives, frees again.
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
  std::vector<std::vector<Size>> known_;  // of one chunk, by piece
  std::vector<Size> several_;             // of the last step of several chunks, or of a block
};

}  // namespace netsim
