#include "sim/network/fabric_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {
namespace {

std::uint32_t checked_queues(std::uint32_t classes, std::uint32_t channels, const ConfigNode& node) {
  if (classes * channels > kMaxClasses) {
    const ConfigNode* given = node.find("classes");
    (given != nullptr ? *given : node)
        .fail(
            fmt::format("{} data classes in {} virtual channels, which the topology needs with this routing, "
                        "are {} data queues of a port; allowed are {}",
                        classes, channels, classes * channels, kMaxClasses));
  }
  return classes * channels;
}

}  // namespace

FabricState::FabricState(const Graph& graph_in, const SwitchRules& common, std::uint32_t channels_in,
                         const ConfigNode& node)
    : graph(graph_in),
      rules(1, common),
      rules_of_node(graph.node_count(), 0),
      rules_of_port(graph.port_count(), 0),
      classes(static_cast<std::uint32_t>(rules.front().switches.classes)),
      channels(channels_in),
      data_queues(checked_queues(classes, channels, node)),
      priorities(kDataPriority + data_queues),
      ports(graph.port_count()),
      far_set(ports.size(), 0),
      queues(ports.size() * priorities),
      paused_since(queues.size()),
      held_time(queues.size()),
      pauses(ports.size()),
      ingress(ports.size() * data_queues),
      marking(ports.size()),
      links(ports.size()),
      tallies(ports.size()),
      paths(std::size_t{1} << 32),
      routed(kAggregationTarget) {
  for (std::uint32_t channel = 0; channel < channels; ++channel) {
    for (std::uint32_t priority = 0; priority < priorities; ++priority) {
      in_channel[channel][priority] = static_cast<std::uint8_t>(
          priority < kDataPriority ? priority : kDataPriority + channel * classes + class_of(priority));
    }
  }
}

void FabricState::add_rules(SwitchRules own, NodeId first, NodeId end) {
  const auto index = static_cast<std::uint8_t>(rules.size());
  NETSIM_CHECK(index == rules.size(), "too many fabrics");
  rules.push_back(std::move(own));
  for (NodeId id = first; id < end; ++id) {
    rules_of_node[id] = index;
    for (const PortId port : graph.ports_of(id)) rules_of_port[port] = rules_of_port[port ^ 1U] = index;
  }
}

Bytes FabricState::cut_through_header(PortId port) const {
  const NodeId there = graph.port(port).peer_node;
  if (graph.node(there).kind != NodeKind::fabric_switch) return 0;
  const SwitchParameters& parameters = of_switch(there);
  return parameters.forwarding == Switching::cut_through ? parameters.header : 0;
}

std::vector<bool> FabricState::lossy_links() const {
  const auto holds_back = [](const SwitchRules& one) { return one.holds_back(); };
  std::vector<bool> lossy;
  if (std::all_of(rules.begin(), rules.end(), holds_back)) return lossy;
  for (const std::uint8_t of_port : rules_of_port) lossy.push_back(!rules[of_port].holds_back());
  return lossy;
}

Bytes FabricState::queued(PortId port) const {
  Bytes sum = 0;
  for (std::uint32_t i = 0; i < priorities; ++i) sum += queue(port, i).bytes;
  return sum;
}

}  // namespace netsim
