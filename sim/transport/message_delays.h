// MessageDelays: the parts of a message's time from send() to its last byte at the destination. They are
// reported at delivery after Endpoint::tell_delays().
#pragma once

#include <span>

#include "sim/core/units.h"
#include "sim/topology/graph.h"

namespace netsim {

// Time that a message spent at one port, its link included.
struct PortDelay {
  PortId port = kNoId;  // kNoId: several ports further on the way together
  // Transmission time of the message's bytes in an idle network, all at the slowest port of its way.
  Time transmission = 0;
  // Wait of the message's last packet behind other packets. A wait for packets of the same message that an
  // idle network has too is not included; it is part of transmission.
  Time queueing = 0;
  // Wait of the last packet while the far end held its class back, by PFC pauses or lack of credits. At the
  // port to the wire it includes such waits of the whole message before that packet left the sender.
  Time paused = 0;

  Time sum() const { return transmission + queueing + paused; }
};

// The delays add up to the message's time or less. The rest is time at the sender: for its window or pacing,
// for earlier messages, or for a retransmission.
struct MessageDelays {
  Time propagation = 0;  // time of the first byte in an idle network
  // The delays at ports. The slowest port comes first, then the others in the order of the path. The span is
  // valid until the next delivery.
  std::span<const PortDelay> ports;
};

// DelayTeller: computes the delays of the message that is being delivered. It costs time only if it is asked.
class DelayTeller {
 public:
  virtual ~DelayTeller() = default;
  // Returns the delays. It must be called at the beginning of message_delivered(), before anything is sent.
  virtual MessageDelays tell() = 0;
};

}  // namespace netsim
