// TransferTraits: how a message is to travel, besides from where to where. Said once, by the workload, and
// carried unchanged through job and executor to the queue pair; whoever schedules flows changes it on the
// way.
#pragma once

#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

struct TransferTraits {
  static constexpr std::uint32_t kNoPathHint = UINT32_MAX;

  // Messages of different jobs never share a queue pair.
  std::uint32_t job = 0;
  // Messages of one (job, source, destination, class, channel) are one stream of packets; within a host there
  // are no classes, and those with own_queue_pair are one stream, too. On the scale-out fabric the queue pair
  // is channel mod `transport.queue_pairs`, unless own_queue_pair.
  std::uint32_t channel = 0;
  // One of the paths between the two ends, for a routing policy that takes hints; carried, and read by none
  // yet. kNoPathHint: the policy chooses.
  std::uint32_t path_hint = kNoPathHint;
  // Which of the network's data classes it travels in.
  std::uint8_t traffic_class = 0;
  // Among the messages of one queue pair: those of a higher priority go first, packet by packet. Queue pairs
  // take turns, whatever the priority of their messages.
  std::uint8_t priority = 0;
  // Scale-out: each channel is a queue pair, however many `transport.queue_pairs` says.
  bool own_queue_pair = false;
  // Of a copy between a GPU and its host's memory, whose source and destination are that GPU: the way back.
  bool from_host = false;
  // With own_queue_pair: no other message comes on this channel, so the queue pair is over with it.
  bool only_message = false;
  // After a packet of the message its queue pair waits as long as the packet takes at this rate, headers
  // included, if that is less than what congestion control allows; 0: no limit.
  BitRate rate_limit = 0;
  // Time from the end of the message's last packet to the next message of its connection. A connection is
  // the messages of one channel and communication without their credits. Other messages of the queue pair
  // go on.
  Time gap = 0;

  bool operator==(const TransferTraits&) const = default;
};

}  // namespace netsim
