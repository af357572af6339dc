// TransferTraits: how a message is to be carried, apart from its source and destination. The workload sets
// it. Job and executor pass it unchanged to the queue pair; only a flow scheduler changes it on the way.
#pragma once

#include <cstdint>

#include "sim/core/ids.h"
#include "sim/core/stream.h"
#include "sim/core/units.h"

namespace netsim {

struct TransferTraits {
  static constexpr Time kMostDeadline = 281 * kSecond;  // it has 48 bits

  // Messages of different jobs never share a queue pair.
  JobId job = 0;
  // Messages with equal job, source, destination, class and channel form one stream of packets. Within a host
  // there are no classes, and messages with own_queue_pair form one stream too. On the scale-out fabric the
  // queue pair is channel mod `transport.queue_pairs`, unless own_queue_pair.
  std::uint32_t channel = 0;
  // Index of a path over the scale-out fabric, for routing policies that take hints. Those that choose per
  // flow do: at each switch with several equal hops, the hint's next digit is the index of the hop.
  // Endpoint::path_count() returns the number of hints to choose from.
  //
  // Where switches choose for each packet, packets only carry the hint (PacketTag). kNoPathHint leaves the
  // choice to the policy.
  std::uint32_t path_hint = kNoPathHint;
  // The data class of the network in which the message travels.
  std::uint8_t traffic_class = 0;
  // Priority among the messages of one queue pair. Messages of a higher priority go first, packet by packet.
  // Queue pairs take turns, whatever the priority of their messages, unless `transport.nic_priorities` gives
  // NICs levels of priority.
  std::uint8_t priority = 0;
  // On the scale-out fabric each channel is a queue pair, whatever `transport.queue_pairs` is.
  bool own_queue_pair = false;
  // For a copy between a GPU and its host's memory, whose source and destination are that GPU: true from the
  // host to the GPU.
  bool from_host = false;
  // With own_queue_pair: the channel carries no other message, so the queue pair ends with this one.
  bool only_message = false;
  // The stream of the message's task. Like the deadline it is for flow schedulers only.
  Stream stream = Stream::compute;
  // Time from the begin of the message's flow (FlowView) to its deadline, 1 to kMostDeadline; 0: none. The
  // bits are those that alignment leaves free.
  std::uint64_t deadline : 48 = 0;
  // After a packet of the message the queue pair waits as long as the packet takes at this rate, headers
  // included. A lower rate of congestion control takes precedence; 0 means no limit.
  BitRate rate_limit = 0;
  // Time from the end of the message's last packet to the next message of its connection. A connection is the
  // messages of one channel and communication without their credits. Other messages of the queue pair are not
  // delayed.
  Time gap = 0;

  void set_deadline(Time after) {
    deadline = static_cast<std::uint64_t>(after) & ((std::uint64_t{1} << 48) - 1);
  }
  bool operator==(const TransferTraits&) const = default;
};
static_assert(sizeof(TransferTraits) == 40);

}  // namespace netsim
