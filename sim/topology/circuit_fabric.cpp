#include "sim/topology/circuit_fabric.h"

#include <algorithm>
#include <map>

#include "sim/topology/hop_ordered_routes.h"
#include "sim/topology/up_routes.h"

namespace netsim {
namespace {

class CircuitTopology final : public Topology {
 public:
  CircuitTopology(CircuitFabric fabric, const CircuitFabricParameters& parameters, std::uint32_t channels)
      : fabric_(std::move(fabric)), parameters_(parameters), channels_(channels) {}

  std::uint32_t host_ports() const override { return fabric_.switches * fabric_.hosts_per_switch; }

  std::unique_ptr<Routes> build(Graph& graph, std::span<const HostPort> nics) const override {
    const auto first = static_cast<NodeId>(graph.node_count());
    for (std::uint32_t i = 0; i < fabric_.switches; ++i)
      graph.add_node(NodeKind::fabric_switch, atom(graph, nics, i), name(i));
    for (std::uint32_t port = 0; port < nics.size(); ++port)
      graph.add_link(first + port / fabric_.hosts_per_switch, nics[port].nic, host_link());
    if (parameters_.packet_rate) {
      const NodeId middle = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "packets", 1);
      for (std::uint32_t i = 0; i < fabric_.switches; ++i)
        graph.add_link(first + i, middle, parameters_.link(*parameters_.packet_rate));
    }
    for (const CircuitFabric::Optical& one : fabric_.optical) add_optical(graph, first, one);
    return hop_ordered_routes(graph, up_routes(graph, nics, graph.avoided()), channels_);
  }

 private:
  std::string name(std::uint32_t number) const {
    return (fabric_.server_ports != 0 ? "server" : "switch") + std::to_string(number);
  }
  AtomId atom(Graph& graph, std::span<const HostPort> nics, std::uint32_t number) const {
    const bool in_host = fabric_.server_ports != 0 && number < nics.size();
    return in_host ? graph.node(nics[number].nic).atom : graph.add_atom();
  }
  LinkSpec circuit() const { return parameters_.link(parameters_.switch_rate.value_or(parameters_.rate)); }
  LinkSpec host_link() const {
    if (fabric_.server_ports == 0) return parameters_.link();
    LinkSpec link = circuit();
    link.rate *= fabric_.server_ports;
    link.delay = 0;
    link.cut_through = true;
    return link;
  }
  // Adds an optical switch and its circuits. A circuit that several configurations have is one link; one that
  // a configuration has twice is two links.
  void add_optical(Graph& graph, NodeId first, const CircuitFabric::Optical& one) const {
    OpticalSwitch optical{.name = one.name, .configurations = {}, .waits = fabric_.waits};
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<PortId>> known;
    for (const CircuitFabric::Configuration& configuration : one.configurations) {
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> used;
      OpticalSwitch::Configuration result{.name = configuration.name, .circuits = {}};
      for (const auto& [a, b] : configuration.circuits) {
        const std::pair<std::uint32_t, std::uint32_t> ends = std::minmax(a, b);
        std::vector<PortId>& links = known[ends];
        const std::size_t index = used[ends]++;
        if (index == links.size())
          links.push_back(graph.add_link(first + ends.first, first + ends.second, circuit()));
        result.circuits.push_back(links[index]);
      }
      std::sort(result.circuits.begin(), result.circuits.end());
      optical.configurations.push_back(std::move(result));
    }
    graph.add_optical_switch(std::move(optical));
  }

  CircuitFabric fabric_;
  CircuitFabricParameters parameters_;
  std::uint32_t channels_;
};

// Returns the switches as joined when each optical switch has the configuration `number`, or its last one if
// it has fewer. kNoId joins all circuits that they can make.
SwitchGraph joined_circuits(const CircuitFabric& fabric, bool packets, std::uint32_t number) {
  SwitchGraph graph;
  graph.switches = fabric.switches + (packets ? 1 : 0);
  for (std::uint32_t i = 0; packets && i < fabric.switches; ++i) graph.links.emplace_back(i, fabric.switches);
  for (const CircuitFabric::Optical& one : fabric.optical) {
    for (std::size_t i = 0; i < one.configurations.size(); ++i) {
      if (number != kNoId && i != std::min<std::size_t>(number, one.configurations.size() - 1)) continue;
      const Circuits& circuits = one.configurations[i].circuits;
      graph.links.insert(graph.links.end(), circuits.begin(), circuits.end());
    }
  }
  graph.tidy();
  return graph;
}

// Returns the number of links between switches on the longest route, in any configuration that joins all
// switches.
std::uint32_t longest_circuit_way(const CircuitFabric& fabric, bool packets) {
  if (fabric.waits) return joined_circuits(fabric, packets, kNoId).diameter();
  std::size_t most = 0;
  for (const CircuitFabric::Optical& one : fabric.optical) most = std::max(most, one.configurations.size());
  std::uint32_t longest = 0;
  for (std::uint32_t number = 0; number < most; ++number) {
    const SwitchGraph graph = joined_circuits(fabric, packets, number);
    if (graph.is_connected()) longest = std::max(longest, graph.diameter());
  }
  return longest;
}

}  // namespace

std::vector<Circuits> round_robin(std::uint32_t switches) {
  const std::uint32_t players = switches + switches % 2, turning = players - 1;
  std::vector<Circuits> rounds(turning);
  for (std::uint32_t round = 0; round < turning; ++round) {
    const auto meet = [&](std::uint32_t a, std::uint32_t b) {
      if (a < switches && b < switches) rounds[round].emplace_back(std::min(a, b), std::max(a, b));
    };
    meet(round, turning);
    for (std::uint32_t i = 1; i < players / 2; ++i)
      meet((round + i) % turning, (round + turning - i) % turning);
  }
  return rounds;
}

Circuits jumps(std::uint32_t switches, std::uint32_t jump) {
  Circuits circuits;
  for (std::uint32_t i = 0; i < switches; ++i) circuits.emplace_back(i, (i + jump) % switches);
  return circuits;
}

std::unique_ptr<Topology> circuit_fabric(CircuitFabric fabric, const CircuitFabricParameters& parameters,
                                         const ConfigNode& where) {
  const std::int64_t host_ports = std::int64_t{fabric.switches} * fabric.hosts_per_switch;
  if (host_ports > kMaxHostPorts) {
    where.fail("a fabric of " + std::to_string(host_ports) + " host ports; at most " +
               std::to_string(kMaxHostPorts) + " are allowed");
  }
  const bool packets = parameters.packet_rate.has_value();
  if (!joined_circuits(fabric, packets, fabric.waits ? kNoId : 0).is_connected()) {
    where.fail(fabric.waits ? "the circuits of all configurations together do not join all switches"
                            : "the circuits of the first configuration do not join all switches");
  }
  std::int64_t channels = parameters.channels;
  if (channels == 0)
    channels = std::clamp<std::int64_t>(longest_circuit_way(fabric, packets), 1, kMostOrderedChannels);
  return std::make_unique<CircuitTopology>(std::move(fabric), parameters,
                                           static_cast<std::uint32_t>(channels));
}

}  // namespace netsim
