// PortCounters: what a port has transmitted and lost, for tables, laws and reports.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

struct PortCounters {
  Bytes wire_bytes = 0;            // bytes transmitted in all packets, with preamble and gap
  std::uint64_t data_packets = 0;  // transmitted data packets
  Time busy = 0;                   // total time of transmission, up to last_end
  Time last_end = 0;               // end of the last transmission
  std::uint64_t ecn_marks = 0;
  std::uint64_t drops = 0;  // packets dropped because a switch had no buffer space
  // Packets without a route because links were down, counted at the switch's end of the link they arrived by.
  std::uint64_t no_route = 0;
  std::uint64_t cnps = 0;           // congestion notifications that this NIC's port sent, alone or in ACKs
  std::uint64_t pauses = 0;         // PFC pauses that this port received
  Time paused = 0;                  // total time that PFC paused its data classes
  std::uint64_t credit_stalls = 0;  // how often a class of this port ran out of credits
  Time credit_stalled = 0;          // total time that its classes waited for credits
  // Largest number of bytes that waited at the port, over all classes together.
  Bytes max_queue = 0;
  // PFC headroom or credit buffer of this link at its far end, and the largest use of it in one class.
  Bytes headroom = 0, max_headroom_used = 0;
  std::uint64_t lost = 0;  // packets lost on the link, by its loss rate or while it was down

  // Returns the time of transmission up to `time`. No transmission may have begun since.
  Time busy_until(Time time) const { return busy - std::max<Time>(last_end - time, 0); }
};

}  // namespace netsim
