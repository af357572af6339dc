// CircuitControl: lets jobs request other optical circuits while the simulation runs.
// sim/network/circuit_switching.h describes circuits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

class CircuitControl {
 public:
  virtual ~CircuitControl() = default;
  // Returns the names of the optical switches' configurations, by number.
  virtual const std::vector<std::string>& configurations() const = 0;
  // Returns the time that a request takes to reach the switches; above 0.
  virtual Time request_latency() const = 0;
  // Brings all switches that have the configuration to it. Requests are carried out in their order. May be
  // called only between events (Engine::call_at). `when_up` is called between events, when the circuits carry
  // packets.
  virtual void configure(std::uint32_t configuration, std::function<void()> when_up) = 0;
};

}  // namespace netsim
