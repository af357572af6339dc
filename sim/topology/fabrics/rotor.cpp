// rotor: optical switches that cycle through matchings independently of demands. Every pair of switches is
// joined once in each cycle (RotorNet: Mellette et al., SIGCOMM 2017). The matchings of all pairs are divided
// among the rotors. Packets wait for their circuit, or, with `ways: lit`, take several hops over circuits
// that are up. (Opera: Mellette et al., NSDI 2020; it switches its rotors one after the other.)
#include <string>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/topology/circuit_fabric.h"

namespace netsim {
namespace {

enum class RotorRouting : std::uint8_t { direct, up };

struct RotorParameters : CircuitFabricParameters {
  std::int64_t switches = 16;
  std::int64_t hosts_per_switch = 1;
  std::int64_t rotors = 4;
  RotorRouting ways = RotorRouting::direct;
};

const Parameters<RotorParameters>& rotor_parameters() {
  using P = RotorParameters;
  static const auto p = with_circuit_fabric(
      Parameters<P>()
          .integer("switches", &P::switches, {2, 4096}, "packet switches (top of rack)")
          .integer("hosts_per_switch", &P::hosts_per_switch, {1, 1024}, "host ports of a switch")
          .integer("rotors", &P::rotors, {1, 4095},
                   "optical switches; each packet switch has one port to each of them. At most one for each "
                   "other packet switch")
          .choice("ways", &P::ways, {{"direct", RotorRouting::direct}, {"lit", RotorRouting::up}},
                  "direct: packets wait for the circuit to their destination's switch; lit: they take the "
                  "shortest route over the circuits that are up"));
  return p;
}

std::unique_ptr<Topology> make_rotor(const RotorParameters& p, const ConfigNode& where) {
  CircuitFabric fabric;
  fabric.switches = static_cast<std::uint32_t>(p.switches);
  fabric.hosts_per_switch = static_cast<std::uint32_t>(p.hosts_per_switch);
  fabric.waits = p.ways == RotorRouting::direct;
  const std::vector<Circuits> rounds = round_robin(fabric.switches);
  const auto rotors = static_cast<std::size_t>(p.rotors);
  if (rotors > rounds.size()) {
    entry_or_self(where, "rotors")
        .fail(std::to_string(rotors) + " rotors for the " + std::to_string(rounds.size()) + " matchings of " +
              std::to_string(p.switches) + " switches: each rotor needs one");
  }
  for (std::size_t rotor = 0; rotor < rotors; ++rotor) {
    CircuitFabric::Optical one{.name = "rotor" + std::to_string(rotor), .configurations = {}};
    for (std::size_t round = rotor; round < rounds.size(); round += rotors)
      one.configurations.push_back({"matching" + std::to_string(round), rounds[round]});
    fabric.optical.push_back(std::move(one));
  }
  return circuit_fabric(std::move(fabric), p, where);
}

const Registration<Topology> kRotor{"rotor", "packet switches joined by optical rotors", rotor_parameters(),
                                    make_rotor};

}  // namespace
}  // namespace netsim
