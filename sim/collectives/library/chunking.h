// Chunking: how the buffer of a communication is cut into messages. A library decides it. The executor sends
// by it, and prediction counts by it (execution/chunk_sizes.h).
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
// On an ideal network there is one channel, one round and no limit of slots. A raw transfer is one message.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/collectives/execution/communication.h"
#include "sim/collectives/library/collectives_parameters.h"
#include "sim/collectives/protocol.h"
#include "sim/core/units.h"
#include "sim/transport/endpoint.h"

namespace netsim {

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
  // Whether `block_rate` includes the fence after each message within a host.
  bool rate_with_fences = false;
  // Rate, in bytes on the wire, at which the thread blocks of a message copy what they have received and do
  // not pass on. In the first round it is `first_copy_rate`, because all channels are in step there. 0:
  // copies take no time.
  BitRate copy_rate = 0, first_copy_rate = 0;
  // Whether a thread block that adds what it has received to its own data takes longer than for a copy.
  bool sums_take_longer = false;
  std::uint32_t sends_at_once = 1;  // messages of a rank that share the links within its host
  // Whether the first step of a rank also stores its own block in its output, as in an all-gather out of
  // place. The thread block then stores twice what it sends.
  bool stores_own_block = false;
  // Whether that time comes on top of the links' time. It does where receivers read from the sender's memory,
  // because the sender's step uses no link then.
  bool own_block_exposed = false;
  bool operator==(const Chunking&) const = default;
};

// Steps of a connection's buffer (NCCL_STEPS).
inline constexpr std::int64_t kBufferSteps = 8;

// ChunkingInput: what decides how a buffer is cut, besides its size and the parameters.
struct ChunkingInput {
  Reach farthest = Reach::self;  // reach from the first member to the farthest one
  Protocol protocol = Protocol::simple;
  std::uint32_t channels = 1;
  std::uint32_t rings = 1;  // rings that the channels use in turn
  // Largest chunk of a channel, in bytes, where it is not that of the protocol. It is sent as one message,
  // and a connection has kBufferSteps slots.
  std::optional<Bytes> chunk = std::nullopt;
};
// Returns how a buffer is cut by the parameters of the section `collectives`.
Chunking chunking_of(const CommunicationRequest& request, const CollectivesParameters& parameters,
                     const ChunkingInput& input);

}  // namespace netsim
