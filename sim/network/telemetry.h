// In-band network telemetry (INT): records that switches write into a data packet and its ACK carries back.
// They lie in an array beside the packets, by packet index, and only if a congestion control needs them.
#pragma once

#include <array>
#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

// Number of hops that HPCC's header holds (Li et al., SIGCOMM 2019, section 4.1). Further hops are not
// recorded.
inline constexpr std::uint32_t kTelemetryHops = 5;

// State of a switch's egress port at the start of the packet's transmission.
struct TelemetryHop {
  Time time = 0;
  Bytes sent = 0;   // bytes sent by the port before, as on the wire
  Bytes queue = 0;  // bytes left in the port's queues, without the packet
  BitRate rate = 0;
};

struct Telemetry {
  Time sent = 0;  // when the source sent the packet
  std::uint32_t hops = 0;
  std::array<TelemetryHop, kTelemetryHops> hop;
};

}  // namespace netsim
