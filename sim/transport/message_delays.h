// MessageDelays: what the time of a message is made of, from send() to its last byte at the destination. Told
// at its delivery, where Endpoint::tell_delays() asked for it.
#pragma once

#include <span>

#include "sim/core/units.h"
#include "sim/topology/graph.h"

namespace netsim {

// What a message spent at one port, its link included.
struct PortDelay {
  PortId port = kNoId;  // kNoId: several ports further on the way, taken together
  // Of the message's bytes, in an idle network: all at the slowest port of its way.
  Time transmission = 0;
  // Of its last packet, behind other packets; what it waits for packets of its own message in an idle network
  // too is transmission.
  Time queueing = 0;
  // Of its last packet, while the far end held its class back: PFC pauses, no credits. At the port to the
  // wire also of the message as a whole, before that packet left its sender.
  Time paused = 0;

  Time sum() const { return transmission + queueing + paused; }
};

// They add up to the message's time, or less: the rest it waited at its sender, for its window, its pace,
// what the sender sent before it, or a retransmission.
struct MessageDelays {
  Time propagation = 0;              // of its first byte, in an idle network
  std::span<const PortDelay> ports;  // until the next delivery; the slowest first, then by the way
};

// Who can tell of the message that is being delivered. It costs something only if it is asked.
class DelayTeller {
 public:
  virtual ~DelayTeller() = default;
  // At the beginning of message_delivered(), before anything is sent.
  virtual MessageDelays tell() = 0;
};

}  // namespace netsim
