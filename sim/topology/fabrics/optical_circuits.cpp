// optical_circuits: packet switches, or servers that forward, joined by one optical switch (or patch panel)
// in configurations that the user gives. With one configuration it is a patch panel. With several,
// `network.circuits` or a job changes the configuration.
#include <algorithm>
#include <numeric>
#include <string>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/topology/circuit_fabric.h"

namespace netsim {
namespace {

enum class OpticalRouting : std::uint8_t { up, direct };

struct OpticalCircuitsParameters : CircuitFabricParameters {
  std::int64_t switches = 0;
  std::int64_t hosts_per_switch = 1;
  std::int64_t degree = 4;
  bool servers = false;
  ConfigNode configurations;
  OpticalRouting ways = OpticalRouting::up;
};

const Parameters<OpticalCircuitsParameters>& optical_circuits_parameters() {
  using P = OpticalCircuitsParameters;
  static const auto p = with_circuit_fabric(
      Parameters<P>()
          .integer("switches", &P::switches, {2, 65536}, "packet switches, or servers that forward; required")
          .required()
          .integer("hosts_per_switch", &P::hosts_per_switch, {1, 1024}, "host ports of a switch")
          .integer("degree", &P::degree, {1, 4096}, "ports of a switch into the optical switch")
          .flag("servers", &P::servers,
                "each switch is the part of its one host that forwards packets, which takes no time; `rate` "
                "is the rate of a circuit")
          .list("configurations", &P::configurations,
                "configurations of which the first is set at the start: a list of {name: NAME, and any of "
                "jumps: [1, 3] (circuits from each switch i to i + 1, to i + 3), matchings: [0, 4] (rounds "
                "of a tournament in which all switches meet), circuits: [[0, 1], [2, 3]]}; required")
          .required()
          .choice("ways", &P::ways, {{"lit", OpticalRouting::up}, {"direct", OpticalRouting::direct}},
                  "lit: packets take the shortest route over the circuits that are up; direct: over the "
                  "circuits of all configurations, and wait while one is down"));
  return p;
}

std::uint32_t below(const ConfigNode& node, std::int64_t limit, std::int64_t least = 0) {
  const std::int64_t value = read_integer(node);
  if (value < least || value >= limit) {
    node.fail("'" + node.text() + "' is out of range: " + std::to_string(least) + " to " +
              std::to_string(limit - 1));
  }
  return static_cast<std::uint32_t>(value);
}

const ConfigNode& list_in(const ConfigNode& node) {
  if (!node.is_sequence()) node.fail("expected a list");
  return node;
}

class Reader {
 public:
  explicit Reader(const OpticalCircuitsParameters& p) : p_(p) {}

  CircuitFabric::Configuration read(const ConfigNode& entry) const {
    if (!entry.is_map())
      entry.fail("expected a configuration, {name: ..., jumps: ..., matchings: ..., circuits: ...}");
    entry.allow_keys({"name", "jumps", "matchings", "circuits"});
    const ConfigNode* name = entry.find("name");
    if (name == nullptr) entry.fail("'name' is missing");
    CircuitFabric::Configuration configuration{read_text(*name), {}};
    add_jumps(entry, configuration.circuits);
    add_matchings(entry, configuration.circuits);
    add_pairs(entry, configuration.circuits);
    check_degree(entry, configuration);
    return configuration;
  }

 private:
  void add_jumps(const ConfigNode& entry, Circuits& circuits) const {
    const ConfigNode* list = entry.find("jumps");
    if (list == nullptr) return;
    for (const ConfigNode& jump : list_in(*list).items()) {
      const Circuits ring = jumps(static_cast<std::uint32_t>(p_.switches), below(jump, p_.switches, 1));
      circuits.insert(circuits.end(), ring.begin(), ring.end());
    }
  }
  void add_matchings(const ConfigNode& entry, Circuits& circuits) const {
    const ConfigNode* list = entry.find("matchings");
    if (list == nullptr) return;
    const std::vector<Circuits> rounds = round_robin(static_cast<std::uint32_t>(p_.switches));
    for (const ConfigNode& number : list_in(*list).items()) {
      const Circuits& round = rounds[below(number, static_cast<std::int64_t>(rounds.size()))];
      circuits.insert(circuits.end(), round.begin(), round.end());
    }
  }
  void add_pairs(const ConfigNode& entry, Circuits& circuits) const {
    const ConfigNode* list = entry.find("circuits");
    if (list == nullptr) return;
    for (const ConfigNode& pair : list_in(*list).items()) {
      if (!pair.is_sequence() || pair.items().size() != 2) pair.fail("expected a pair of switches, [0, 1]");
      const std::uint32_t a = below(pair.items()[0], p_.switches), b = below(pair.items()[1], p_.switches);
      if (a == b) pair.fail("a circuit from a switch to itself");
      circuits.emplace_back(a, b);
    }
  }
  void check_degree(const ConfigNode& entry, const CircuitFabric::Configuration& configuration) const {
    std::vector<std::int64_t> ports(static_cast<std::size_t>(p_.switches), 0);
    for (const auto& [a, b] : configuration.circuits) {
      ++ports[a];
      ++ports[b];
    }
    const auto most = std::max_element(ports.begin(), ports.end());
    if (*most <= p_.degree) return;
    entry.fail("configuration '" + configuration.name + "' needs " + std::to_string(*most) +
               " ports of switch " + std::to_string(most - ports.begin()) + ", which has " +
               std::to_string(p_.degree) + " (`degree`)");
  }

  const OpticalCircuitsParameters& p_;
};

std::unique_ptr<Topology> make_optical_circuits(const OpticalCircuitsParameters& p, const ConfigNode& where) {
  CircuitFabric fabric;
  fabric.switches = static_cast<std::uint32_t>(p.switches);
  fabric.hosts_per_switch = static_cast<std::uint32_t>(p.hosts_per_switch);
  fabric.waits = p.ways == OpticalRouting::direct;
  if (p.servers && p.hosts_per_switch != 1)
    entry_or_self(where, "servers").fail("a server has one host port: hosts_per_switch: 1");
  if (p.servers) fabric.server_ports = static_cast<std::uint32_t>(p.degree);
  CircuitFabric::Optical one{.name = "optical", .configurations = {}};
  if (list_in(p.configurations).items().empty()) p.configurations.fail("expected at least one configuration");
  for (const ConfigNode& entry : p.configurations.items()) {
    one.configurations.push_back(Reader(p).read(entry));
    const std::string& name = one.configurations.back().name;
    const auto same = [&](const CircuitFabric::Configuration& c) { return c.name == name; };
    if (std::count_if(one.configurations.begin(), one.configurations.end(), same) > 1)
      entry.fail("a second configuration '" + name + "'");
  }
  fabric.optical.push_back(std::move(one));
  return circuit_fabric(std::move(fabric), p, where);
}

const Registration<Topology> kOpticalCircuits{
    "optical_circuits", "packet switches joined by an optical switch in given configurations",
    optical_circuits_parameters(), make_optical_circuits};

}  // namespace
}  // namespace netsim
