#include "sim/network/fabric_state.h"

namespace netsim {

FabricState::FabricState(const Graph& graph_in, const SwitchParameters& parameters_in)
    : graph(graph_in),
      parameters(parameters_in),
      classes(static_cast<std::uint32_t>(parameters.classes)),
      priorities(kDataPriority + classes),
      ports(graph.port_count()),
      far_set(ports.size(), 0),
      queues(ports.size() * priorities),
      paused_since(queues.size()),
      held_time(queues.size()),
      pauses(ports.size()),
      ingress(ports.size() * classes),
      marking(ports.size()),
      links(ports.size()),
      tallies(ports.size()),
      paths(std::size_t{1} << 32),
      routed(std::size_t{1} << kStepShift) {
  if (parameters.queue_limit != 0) queue_limit = static_cast<std::uint32_t>(parameters.queue_limit);
}

Bytes FabricState::queued(PortId port) const {
  Bytes sum = 0;
  for (std::uint32_t i = 0; i < priorities; ++i) sum += queue(port, i).bytes;
  return sum;
}

}  // namespace netsim
