// CircuitFabric: switches alike, each with some host ports, joined by optical switches only, or also by a
// packet switch in the middle (hybrids, as Helios: Farrington et al., SIGCOMM 2010; c-Through: Wang et al.,
// SIGCOMM 2010). What topologies with optical switches have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/topology/switch_graph.h"
#include "sim/topology/topology.h"

namespace netsim {

// Pairs of switches that a configuration joins: (a, b) is the link from a to b and back; twice: two links.
using Circuits = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

struct CircuitFabricParameters : EthernetParameters {
  std::optional<BitRate> switch_rate, packet_rate;
  std::int64_t channels = 0;
};
// Adds what such topologies have in common for the user (P derives from CircuitFabricParameters).
template <class P>
Parameters<P>&& with_circuit_fabric(Parameters<P>&& parameters) {
  parameters.rate("packet_rate", static_cast<std::optional<BitRate> P::*>(&P::packet_rate), kLinkRates,
                  "there is no such switch",
                  "rate of a link from each switch to a packet switch in the middle, beside the circuits");
  parameters.rate("switch_rate", static_cast<std::optional<BitRate> P::*>(&P::switch_rate), kLinkRates,
                  "the same as rate", "rate of the links between switches");
  parameters.integer(
      "channels", static_cast<std::int64_t P::*>(&P::channels), {0, kMostOrderedChannels},
      "virtual channels of each link: a packet takes the next one with every hop, so that lossless "
      "traffic has no deadlock; 0: as many as the longest way has links between switches, at most 6");
  return with_ethernet(std::move(parameters));
}

struct CircuitFabric {
  struct Configuration {
    std::string name;
    Circuits circuits;
  };
  struct Optical {
    std::string name;
    std::vector<Configuration> configurations;  // at least one
  };
  std::uint32_t switches = 0;
  std::uint32_t hosts_per_switch = 1;
  std::vector<Optical> optical;
  bool waits = false;  // OpticalSwitch::waits
  // Whether each switch is the part of its one host that forwards: packets pass between the two at the rate
  // of so many circuits and without delay. 0: it is not.
  std::uint32_t server_ports = 0;
};

// Circuits that join all pairs of `switches` in as few configurations as can be, each a matching: the rounds
// of a tournament, switches - 1 of an even number (the circle method; Lucas, Recreations mathematiques,
// 1883), `switches` of an odd one, in each of which one is left out.
std::vector<Circuits> round_robin(std::uint32_t switches);
// A circuit from each switch to the one `jump` further on: rings, one if jump and switches have no divisor in
// common.
Circuits jumps(std::uint32_t switches, std::uint32_t jump);

// ConfigError at `where` for a fabric that falls apart, in its first configuration if packets do not wait, or
// with all that it can make if they do.
std::unique_ptr<Topology> circuit_fabric(CircuitFabric fabric, const CircuitFabricParameters& parameters,
                                         const ConfigNode& where);

}  // namespace netsim
