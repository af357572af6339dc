// PacketTag: what a packet carries beside its own fields for policies that are called for each packet. Tags
// lie in an array beside the packets, by packet index, and only if such a policy is configured.
#pragma once

#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

// The path hint of a message without one: routing chooses its path.
inline constexpr std::uint32_t kNoPathHint = UINT32_MAX;

struct PacketTag {
  // Identifies the packet's queue pair, data and replies alike. It is the same in every run with the same
  // traffic, whatever the number of threads.
  std::uint64_t flow = 0;
  // Payload bytes of the packet's message from this packet on; 0 for ACKs, NACKs and notifications, which a
  // scheduler by least bytes therefore sends first.
  Bytes remaining = 0;
  Bytes message_bytes = 0;                // payload of the whole message; 0 for replies
  Time message_start = 0;                 // time at which the message was handed to the sender; 0 for replies
  Time queued_at = 0;                     // time at which the packet joined the queue of its present switch
  std::uint32_t path_hint = kNoPathHint;  // TransferTraits::path_hint of the message
  std::uint8_t priority = 0;              // TransferTraits::priority of the message
};

}  // namespace netsim
