// CircuitFabric: identical switches, each with some host ports, joined by optical switches. All topologies
// with optical switches use it. A packet switch in the middle may join the switches as well, in a hybrid.
// (Helios: Farrington et al., SIGCOMM 2010; c-Through: Wang et al., SIGCOMM 2010.)
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

// Pairs of switches that a configuration joins. (a, b) is a link from a to b and back; a pair that occurs
// twice is two links.
using Circuits = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

struct CircuitFabricParameters : EthernetParameters {
  std::optional<BitRate> switch_rate, packet_rate;
  std::int64_t channels = 0;
};
// Adds the parameters that all such topologies have (P derives from CircuitFabricParameters).
template <class P>
Parameters<P>&& with_circuit_fabric(Parameters<P>&& parameters) {
  parameters.rate("packet_rate", static_cast<std::optional<BitRate> P::*>(&P::packet_rate), kLinkRates,
                  "no such switch",
                  "rate of a link from each switch to a central packet switch, besides the circuits");
  parameters.rate("switch_rate", static_cast<std::optional<BitRate> P::*>(&P::switch_rate), kLinkRates,
                  "the same as rate", "rate of the links between switches");
  parameters.integer(
      "channels", static_cast<std::int64_t P::*>(&P::channels), {0, kMostOrderedChannels},
      "virtual channels of each link: a packet takes the next one with every hop, so that lossless traffic "
      "has no deadlock; 0: as many as the longest route has links between switches, at most 6");
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
  // Above 0: each switch is the forwarding part of its one host. Packets pass between the two without delay,
  // at the rate of `server_ports` circuits. 0: switches are separate from hosts.
  std::uint32_t server_ports = 0;
};

// Returns circuits that join all pairs of `switches` in as few configurations as possible, each a matching.
// They are the rounds of a tournament (the cycle method; Lucas, Recreations mathematiques, 1883). An even
// number has switches - 1 rounds; an odd number has `switches` rounds, and one switch is idle in each.
std::vector<Circuits> round_robin(std::uint32_t switches);
// Returns a circuit from each switch to the switch `jump` further on. They form rings; there is one ring if
// `jump` and `switches` have no common divisor.
Circuits jumps(std::uint32_t switches, std::uint32_t jump);

// Creates the topology. Throws a ConfigError at `where` if the fabric is not connected. If packets wait for
// circuits, all circuits count; otherwise those of the first configuration.
std::unique_ptr<Topology> circuit_fabric(CircuitFabric fabric, const CircuitFabricParameters& parameters,
                                         const ConfigNode& where);

}  // namespace netsim
