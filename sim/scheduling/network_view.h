// NetworkView: what the network tells the schedulers above it. A field that is off, that the scheduler does
// not name in its needs(), or of which nothing is old enough is empty (views.h).
#pragma once

#include <cstdint>
#include <span>

#include "sim/core/ids.h"
#include "sim/core/units.h"

namespace netsim {

// SendRate: the rate that congestion control allows a queue pair with unfinished messages.
struct SendRate {
  JobId job = 0;
  GpuId source, destination;
  std::uint32_t queue_pair = 0;  // number among those of the job between the two GPUs
  BitRate rate = 0;              // bit/s
};

// Stall: a rank that has launched a communication and waits for another rank to do so.
struct Stall {
  JobId job = 0;
  RankId rank = 0;                  // the rank that waits
  RankId peer = 0;                  // the lowest rank that it waits for
  std::uint32_t waits_for = 1;      // number of ranks that it waits for
  std::uint64_t communication = 0;  // as in FlowView
  std::uint32_t name = 0;           // name of the communication in its job's workload
  Time since = 0;                   // when the rank came to it
};

enum class CircuitState : std::uint8_t { none, down, up };  // none: the port belongs to no circuit

// Spans are valid during the call that gets them.
struct NetworkView {
  // By PortId: the share of the last `every` in which the port transmitted, 0 to 1 (`loads`).
  std::span<const double> loads = {};
  std::span<const Bytes> queues = {};           // by PortId: bytes that wait there (`queues`)
  std::span<const SendRate> rates = {};         // by source and destination (`rates`)
  std::span<const std::uint8_t> down = {};      // by PortId: 1 if its link is known to be down (`failures`)
  std::span<const std::uint8_t> failed = {};    // by HostId: 1 if the host has failed (`failures`)
  std::span<const CircuitState> circuits = {};  // by PortId (`circuits`)
  std::span<const Stall> stalls = {};           // by job and rank (`stalls`)
};

}  // namespace netsim
