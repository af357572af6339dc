// In-band network telemetry (INT): what a data packet writes down on its way and its ACK brings back. Lies in
// an array beside the packets, by packet index, and only where a congestion control asks for it.
#pragma once

#include <array>
#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

// As many hops as HPCC's header holds (Li et al., SIGCOMM 2019, section 4.1); further ones are not recorded.
inline constexpr std::uint32_t kTelemetryHops = 5;

// An egress port of a switch when the transmission of the packet started.
struct TelemetryHop {
  Time time = 0;
  Bytes sent = 0;   // by the port until then, as on the wire
  Bytes queue = 0;  // left in the port's queues, without the packet
  BitRate rate = 0;
};

struct Telemetry {
  Time sent = 0;  // the packet, by its source
  std::uint32_t hops = 0;
  std::array<TelemetryHop, kTelemetryHops> hop;
};

}  // namespace netsim
