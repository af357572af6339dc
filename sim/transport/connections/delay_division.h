// DelayDivision: divides the time of messages that are delivered, of one set of atoms, by its causes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/packet_trace.h"
#include "sim/transport/connections/ideal_times.h"
#include "sim/transport/message_delays.h"

namespace netsim {

class DelayDivision final : public DelayTeller {
 public:
  explicit DelayDivision(IdealTimes& ideal_times) : passages_(ideal_times) {}
  // The message that is delivered next took `took` from send() to its last byte. `trace`: of its last packet;
  // null where that is not what it was complete with, and all it waited counts as its sender's. Returns this.
  DelayTeller* of(std::uint32_t queue_pair, Bytes bytes, Time took, const PacketTrace* trace) {
    queue_pair_ = queue_pair;
    bytes_ = bytes;
    took_ = took;
    trace_ = trace;
    return this;
  }
  // What a message waited at ports does not exceed what it waited at all: the ports at the beginning of its
  // way have less then.
  MessageDelays tell() override;

 private:
  void add_waits(std::span<const PacketTrace::Wait> waits, Time most);
  PortDelay beyond_idle(const PacketTrace::Wait& wait) const;

  IdealPassages passages_;
  std::uint32_t queue_pair_ = 0;
  Bytes bytes_ = 0;
  Time took_ = 0;
  const PacketTrace* trace_ = nullptr;
  const IdealPassage* idle_ = nullptr;  // of the message
  std::vector<PortDelay> ports_;
};

}  // namespace netsim
