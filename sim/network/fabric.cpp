#include "sim/network/fabric.h"

#include <algorithm>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/network/link_state.h"

namespace netsim {

Fabric::Fabric(Engine& engine, const Graph& graph, const Partition& partition,
               const FabricParameters& parameters, const ConfigNode& node, Bytes largest_packet,
               std::uint64_t seed)
    : engine_(engine),
      graph_(graph),
      state_(graph, parameters.switches),
      largest_packet_(largest_packet),
      seed_(hash_combine(RandomStream(seed, "ecmp").key(), 0)),
      routing_(Registry<RoutingPolicy>::instance().create(parameters.switches.routing, "ecmp")),
      faults_(engine, state_, parts_, read_faults(parameters.faults, graph, parameters.detection_delay),
              seed),
      deadlock_(state_, parts_, faults_) {
  state_.resolution = parameters.transmission_resolution;
  if (state_.parameters.queue_limit != 0 && state_.parameters.flow_control == FlowControl::credits) {
    node.fail("queue_limit drops packets, flow_control: credits never does: only one of them is allowed");
  }
  routing_->check(graph);
  state_.packet_routing = routing_->per_packet();
  for (NodeId id = 0; routes_packets() && id < graph.node_count(); ++id) {
    state_.turns.push_back(0);
    state_.choices.emplace_back(seed, "spray", id);
  }
  build_ports(seed);
  build_classes(state_, node);
  build_buffers(state_, largest_packet_, node);
  build_credits(state_, largest_packet_, node);
  build_parts(partition);
  engine_.set_monitor(deadlock_.interval(), [this](Time now, bool idle) {
    if (deadlock_.look(now, idle)) engine_.stop();
  });
}

void Fabric::build_ports(std::uint64_t seed) {
  const auto discipline = Registry<QueueDiscipline>::instance().create(state_.parameters.scheduler, "strict");
  state_.arbiter = ClassArbiter(discipline->compile(state_.classes), state_.ports.size());
  const auto marker = Registry<Marker>::instance().create(state_.parameters.marker, "red");
  for (PortId id = 0; id < graph_.port_count(); ++id) {
    state_.marking[id].random = RandomStream(seed, "ecn", id);
    build_port(id, *marker);
  }
  for (PortId id = 0; id < graph_.port_count(); ++id) set_passage(state_, id);
}

void Fabric::build_port(PortId id, const Marker& marker) {
  const LinkSpec& link = graph_.port(id).link;
  fabric::Port& p = state_.ports[id];
  p.origin = Origin(id);
  p.overhead = static_cast<std::uint16_t>(link.overhead);
  state_.links[id].delay = link.delay;
  set_rate(state_, id, link.rate);
  if (!state_.at_switch(id)) return;
  RedLine& red = state_.marking[id].red;
  red = marker.compile(link.rate);
  if (red.at_enqueue) p.flags |= fabric::kMarksAtEnqueue;
  for (std::uint32_t priority = kCnpPriority; priority < state_.priorities; ++priority)
    state_.queue(id, priority).mark_above = static_cast<std::uint32_t>(std::min<Bytes>(red.kmin, UINT32_MAX));
  if (state_.arbiter.kind() != DisciplinePlan::Kind::strict) p.flags |= fabric::kArbitrated;
}

void Fabric::build_parts(const Partition& partition) {
  for (PortId id = 0; id < graph_.port_count(); ++id) {
    const PortSpec& spec = graph_.port(id);
    state_.far_set[id] = partition.set_of(spec.peer_node);
    if (state_.far_set[id] != partition.set_of(spec.node)) state_.ports[id].flags |= fabric::kLeavesSet;
    // A GPU hears of a message that the NIC has received when its last packet is there.
    if (spec.link.kind == LinkKind::pcie && graph_.node(spec.peer_node).kind == NodeKind::gpu)
      state_.ports[id].flags |= fabric::kOnlyLast;
  }
  for (std::uint32_t set = 0; set < engine_.sets(); ++set)
    parts_.push_back(std::make_unique<FabricPart>(engine_.set(set), state_));
}

void Fabric::enable_telemetry() {
  enable_timestamps();
  for (PortId id = 0; id < graph_.port_count(); ++id) {
    if (state_.at_switch(id)) state_.ports[id].flags |= fabric::kTelemetry;
  }
}

void Fabric::enable_timestamps() {
  state_.telemetry = true;
  for (auto& part : parts_) part->packets().enable_telemetry();
}

void Fabric::enable_traces() {
  for (auto& part : parts_) part->packets().enable_traces();
}

// ---- Paths

std::uint32_t Fabric::add_path(const std::vector<std::uint32_t>& steps) {
  const std::size_t first = state_.paths.grow(steps.size());
  std::copy(steps.begin(), steps.end(), state_.paths.data() + first);
  return static_cast<std::uint32_t>(first);
}

void Fabric::replace_path(std::uint32_t first, const std::vector<std::uint32_t>& steps) {
  std::copy(steps.begin(), steps.end(), state_.paths.data() + first);
}

bool Fabric::path_begins_with(std::uint32_t first, const std::vector<std::uint32_t>& steps) const {
  return std::equal(steps.begin(), steps.end(), state_.paths.data() + first);
}

std::span<const PortId> Fabric::ports_of_path(std::uint32_t first) const {
  std::size_t end = first;
  while (state_.paths[end] >> kStepShift == static_cast<std::uint32_t>(StepKind::port)) ++end;
  return {state_.paths.data() + first, end - first};
}

std::uint32_t Fabric::route_step(NodeId destination) {
  const std::size_t index = state_.routed.grow(1);
  state_.routed[index] = {destination, kNoIndex};
  return make_step(StepKind::route, static_cast<std::uint32_t>(index));
}

// The step is read again at every hop.
void Fabric::set_route_step(std::uint32_t step, std::uint32_t index) {
  state_.routed[step & ((1U << kStepShift) - 1)].step = index;
}

}  // namespace netsim
