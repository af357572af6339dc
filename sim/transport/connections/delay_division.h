// DelayDivision: divides the time of delivered messages by its causes, for one logical process.
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
  // Sets the next message to be delivered, which took `took` from send() to its last byte. `trace` is that of
  // its last packet. It is null if another packet completed the message; all waits then count as the
  // sender's. Returns this.
  DelayTeller* of(std::uint32_t queue_pair, Bytes bytes, Time took, const PacketTrace* trace) {
    queue_pair_ = queue_pair;
    bytes_ = bytes;
    took_ = took;
    trace_ = trace;
    return this;
  }
  // Returns the delays. Waits at ports never exceed the message's total wait; the ports at the beginning of
  // its way are reduced to ensure that.
  MessageDelays tell() override;

 private:
  void add_waits(std::span<const PacketTrace::Wait> waits, Time most);
  PortDelay beyond_idle(const PacketTrace::Wait& wait) const;

  IdealPassages passages_;
  std::uint32_t queue_pair_ = 0;
  Bytes bytes_ = 0;
  Time took_ = 0;
  const PacketTrace* trace_ = nullptr;
  const IdealPassage* idle_ = nullptr;  // passage of the message in an idle network
  std::vector<PortDelay> ports_;
};

}  // namespace netsim
