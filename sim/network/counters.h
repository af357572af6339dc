// What has passed through a port, for tables, laws and reports.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

struct PortCounters {
  Bytes wire_bytes = 0;            // transmitted, with preamble and gap, all packets
  std::uint64_t data_packets = 0;  // transmitted data packets
  Time busy = 0;                   // transmitting, in all, up to last_end
  Time last_end = 0;               // of its last transmission
  std::uint64_t ecn_marks = 0;
  std::uint64_t drops = 0;  // a switch had no room
  // Links that are down left no way on: at the switch's end of the link that the packets came by.
  std::uint64_t no_route = 0;
  std::uint64_t cnps = 0;           // congestion notifications that this NIC's port sent, alone or in ACKs
  std::uint64_t pauses = 0;         // PFC pauses that this port received
  Time paused = 0;                  // total time that PFC paused its data classes
  std::uint64_t credit_stalls = 0;  // how often a class of this port ran out of credits
  Time credit_stalled = 0;          // total time that its classes waited for credits
  Bytes max_queue = 0;              // the most that waited at the port, all classes together
  // PFC headroom (or credits) of this link at its far end, and the most that was used of it.
  Bytes headroom = 0, max_headroom = 0;
  std::uint64_t lost = 0;  // on the link: loss rate, link down

  // Transmitting up to `time`, where no transmission has begun since.
  Time busy_until(Time time) const { return busy - std::max<Time>(last_end - time, 0); }
};

}  // namespace netsim
