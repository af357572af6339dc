#include "sim/network/fabric_state.h"

#include <fmt/format.h>

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

FabricState::FabricState(const Graph& graph_in, const SwitchParameters& parameters_in,
                         std::uint32_t channels_in, const ConfigNode& node)
    : graph(graph_in),
      parameters(parameters_in),
      classes(static_cast<std::uint32_t>(parameters.classes)),
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
      routed(kFanTarget) {
  if (parameters.queue_limit != 0) queue_limit = static_cast<std::uint32_t>(parameters.queue_limit);
  for (std::uint32_t channel = 0; channel < channels; ++channel) {
    for (std::uint32_t priority = 0; priority < priorities; ++priority) {
      in_channel[channel][priority] = static_cast<std::uint8_t>(
          priority < kDataPriority ? priority : kDataPriority + channel * classes + class_of(priority));
    }
  }
}

Bytes FabricState::queued(PortId port) const {
  Bytes sum = 0;
  for (std::uint32_t i = 0; i < priorities; ++i) sum += queue(port, i).bytes;
  return sum;
}

}  // namespace netsim
