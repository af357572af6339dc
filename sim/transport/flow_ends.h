// Records of the two ends of a flow that the logical processes write into the journal. Private to the packet
// network.
#pragma once

#include <cstdint>

#include "sim/transport/endpoint.h"

namespace netsim {

struct FlowDelivered {
  std::uint32_t queue_pair;
  Message message;
  Bytes bytes;  // bytes carried
  std::uint32_t number;
  Time start, delivered, ideal;
};
struct FlowAcknowledged {
  std::uint32_t queue_pair;
  Time acknowledged;
};

// Tells that a message of this queue pair was cancelled before any of it left.
struct FlowVanished {
  std::uint32_t queue_pair;
};

}  // namespace netsim
