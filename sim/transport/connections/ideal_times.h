// IdealTimes: what messages of a queue pair take alone in an idle network.
#pragma once

#include <cstdint>

#include "sim/network/fabric.h"
#include "sim/transport/transport_state.h"

namespace netsim {

class IdealTimes {
 public:
  IdealTimes(const TransportState& state, const Fabric& fabric) : state_(state), fabric_(fabric) {}
  // From send() to the last byte at the destination.
  Time of_message(std::uint32_t queue_pair, Bytes bytes) const;

 private:
  const TransportState& state_;
  const Fabric& fabric_;
};

}  // namespace netsim
