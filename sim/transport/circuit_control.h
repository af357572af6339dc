// CircuitControl: who may ask for other circuits while the simulation runs. What circuits are: see
// sim/network/circuit_switching.h.
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
  // Names of the configurations that the optical switches have, by number.
  virtual const std::vector<std::string>& configurations() const = 0;
  // How long a request takes from whoever asks to the switches: above 0.
  virtual Time request_latency() const = 0;
  // Brings all switches that have the configuration to it; several requests are carried out in their order.
  // Between events only (Engine::call_at). `lit` is called between events, when its circuits carry packets.
  virtual void configure(std::uint32_t configuration, std::function<void()> lit) = 0;
};

}  // namespace netsim
