// The two ends of a flow, as the sets write them into the journal. Private to the packet network.
#pragma once

#include <cstdint>

#include "sim/transport/endpoint.h"

namespace netsim {

struct FlowDelivered {
  std::uint32_t queue_pair;
  SendRequest request;
  std::uint32_t number;
  Time start, delivered, ideal;
};
struct FlowAcknowledged {
  std::uint32_t queue_pair;
  Time acknowledged;
};

// A message of this queue pair was cancelled before any of it left.
struct FlowVanished {
  std::uint32_t queue_pair;
};

}  // namespace netsim
