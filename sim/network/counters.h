// What has passed through a port, for tables, laws and reports.
#pragma once

#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

struct PortCounters {
  Bytes wire_bytes = 0;            // transmitted, with preamble and gap, all packets
  std::uint64_t data_packets = 0;  // transmitted data packets
  std::uint64_t ecn_marks = 0, drops = 0;
  std::uint64_t cnps = 0;    // congestion notifications that this NIC's port sent, alone or in ACKs
  std::uint64_t pauses = 0;  // PFC pauses that this port received
  Time paused = 0;           // total time that its data class was paused
  Bytes max_queue = 0;
  // PFC headroom (or credits) of this link at its far end, and the most that was used of it.
  Bytes headroom = 0, max_headroom = 0;
  std::uint64_t lost = 0;  // on the link: loss rate, link down
};

}  // namespace netsim
