// IdealTimes: what messages of a queue pair take alone in an idle network.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/transport/transport_state.h"

namespace netsim {

// How a message passes through an idle network.
struct IdealPassage {
  Time time = 0;                  // from send() to the last byte at the destination
  std::span<const PortId> ports;  // of its way
  std::vector<Time> waits;        // by those: of its last packet, for the packets before it
  PortId slowest = kNoId;         // the first of those with the lowest rate
};

class IdealTimes {
 public:
  IdealTimes(const TransportState& state, const Fabric& fabric) : state_(state), fabric_(fabric) {}
  // From send() to the last byte at the destination.
  Time of_message(std::uint32_t queue_pair, Bytes bytes) const { return time(queue_pair, bytes, {}); }
  // Overwrites `passage`, whose memory is used again.
  void of_message(std::uint32_t queue_pair, Bytes bytes, IdealPassage& passage) const;

 private:
  std::span<const PortId> way(std::uint32_t queue_pair) const;
  Time time(std::uint32_t queue_pair, Bytes bytes, std::span<Time> waits) const;

  const TransportState& state_;
  const Fabric& fabric_;
};

}  // namespace netsim
