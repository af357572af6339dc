// Chunking: how the buffer of a communication becomes messages. The executor sends by it, prediction counts
// by it.
//
// A buffer is shared out evenly to channels. A channel's bytes are sent in the fewest rounds whose chunks are
// at most a slice each: every round is one pass through the schedule's instructions, over 1 / rounds of the
// channel's bytes. So channel c carries share(bytes, channels, c), round r of R carries share(that, R, r),
// and chunk k of it is share(that, divisions, k mod divisions). A chunk of 0 bytes is neither sent nor
// awaited.
//
// A group that spans hosts runs `scale_out_channels` chains of messages, one per channel, each on queue pair
// (channel mod queue pairs). Within a host NCCL's 24 channels (A100 with NVSwitch) move in lockstep, each
// with 1 / 24 of the port; they are timed together, as one message per chunk of up to 24 slices, which gives
// the same times. On an ideal network there is one channel, one round and no window, and a raw transfer is
// one message.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/execution/collectives_parameters.h"
#include "sim/collectives/execution/communication.h"
#include "sim/collectives/schedule.h"
#include "sim/core/units.h"
#include "sim/transport/endpoint.h"

namespace netsim {

struct Chunking {
  std::uint32_t channels = 1;
  Bytes slice = 0;  // the largest chunk of one channel; 0: unlimited
  // Sends in flight (not acknowledged) per thread block and peer; a send beyond it waits. 0: unlimited.
  std::uint32_t send_window = 0;
  bool operator==(const Chunking&) const = default;
};

// By where the farthest member of the group is from its first one.
Chunking chunking_of(const CommunicationRequest& request, const CollectivesParameters& parameters,
                     const Endpoint& endpoint);
// The same at every member. Reach::scale_up for a group that NVLink joins.
Reach farthest_reach(const std::vector<std::uint32_t>& members, const Endpoint& endpoint);

// Rounds of a channel that carries `channel_bytes`; at least 1.
std::uint64_t rounds_of(const Schedule& schedule, const Chunking& chunking, Bytes channel_bytes);

// How many messages of which size a chunk is, over all channels and rounds. Channels come in two sizes, a
// channel's rounds too, and all chunks of one round's size are alike but for a byte: so this is arithmetic,
// and few distinct sizes.
class ChunkSizes {
 public:
  struct Size {
    Bytes bytes = 0;  // > 0
    std::uint64_t count = 0;
  };

  // Of this communication; keeps what is known if it is the same as before.
  void open(const Schedule& schedule, const Chunking& chunking, Bytes bytes);
  const std::vector<Size>& of(std::uint32_t chunk);
  Bytes total(std::uint32_t chunk);

 private:
  static void add(std::vector<Size>& sizes, Bytes bytes, std::uint64_t count);
  void find_rounds();

  const Schedule* schedule_ = nullptr;
  Chunking chunking_;
  Bytes bytes_ = 0;
  std::vector<Size> rounds_;
  std::vector<std::vector<Size>> known_;  // by division
};

}  // namespace netsim
