#include "sim/network/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/network/aggregation/adding_switches.h"
#include "sim/network/link_state.h"
#include "sim/network/path.h"
#include "sim/topology/channel_dependencies.h"

namespace netsim {
namespace {

// Limit on the hops that a search for cycles examines; it takes some tenths of a second.
constexpr std::uint64_t kEffort = 4'000'000;

}  // namespace

Fabric::Fabric(Engine& engine, const Graph& graph, const Routes* routes, const Partition& partition,
               const FabricParameters& parameters, const ConfigNode& node, Bytes largest_packet,
               std::uint64_t seed, std::span<const FabricScope> scopes)
    : engine_(engine),
      graph_(graph),
      seed_(hash_combine(RandomStream(seed, "ecmp").key(), 0)),
      routing_(Registry<RoutingPolicy>::instance().create(parameters.switches.routing, "ecmp")),
      deadlock_check_(parameters.deadlock_check),
      circuits_move_(CircuitSwitching::moves_packets(graph)),
      state_(graph, common_rules(parameters, node, graph),
             routes != nullptr ? routes->channels(routing_->compile().freedom()) : 1, node),
      faults_(engine, state_, shards_, read_faults(parameters.faults, graph, parameters.detection_delay),
              seed),
      deadlock_(state_, shards_, faults_),
      circuits_(engine, state_, shards_, parameters.circuits, node) {
  state_.resolution = parameters.transmission_resolution;
  state_.rules.front().largest_packet = largest_packet;
  for (const FabricScope& scope : scopes) {
    state_.add_rules(fabric_rules(parameters, state_.rules.front(), scope, graph), scope.first_switch,
                     scope.end_switch);
  }
  adds_up_ = adding_switches(state_);
  routing_->prepare(graph);
  state_.routing = routing_->compile();
  state_.policy = routing_.get();
  state_.routing_seed = seed_;
  state_.routes_packets = state_.routing.per_packet() || circuits_move_;
  state_.routes = routes;
  gather_down();
  check_routing(node);
  build_choices(seed);
  build_ports(seed);
  build_classes(state_);
  build_buffers(state_);
  build_credits(state_);
  check_circles(node);
  build_parts(partition);
  engine_.set_monitor(deadlock_.interval(), [this](Time now, bool idle) {
    if (deadlock_.look(now, idle)) engine_.stop();
  });
}

// Combines the ports to avoid by faults and by circuits.
void Fabric::gather_down() {
  down_ = faults_.known_down();
  const std::vector<bool>& avoided = circuits_.avoided();
  for (PortId port = 0; port < avoided.size(); ++port) down_[port] = down_[port] || avoided[port];
}

void Fabric::on_routes_changed(std::function<void()> call) {
  routes_changed_ = std::move(call);
  const auto changed = [this] {
    gather_down();
    routes_changed_();
  };
  faults_.on_routes_changed(changed);
  circuits_.on_routes_changed(changed);
}

void Fabric::check_routing(const ConfigNode& node) const {
  const ConfigNode* policy = node.find("routing");
  if (state_.routes_packets && !state_.routing.per_packet() &&
      (state_.routing.detour != RoutingPlan::Detour::never || !routing_->fixed_ends().empty())) {
    (policy != nullptr ? *policy : node)
        .fail(
            "routes of whole flows over intermediates or named switches do not fit circuits that change; "
            "allowed: ecmp, spray, adaptive, and valiant and ugal per packet");
  }
  if (state_.routing.choice == RoutingPlan::Choice::own &&
      state_.routing.detour == RoutingPlan::Detour::if_shorter) {
    (policy != nullptr ? *policy : node)
        .fail(
            "a routing policy whose switches choose the next hop (Choice::own) cannot detour where queues "
            "are "
            "shorter (Detour::if_shorter): its SwitchRouter has to compare the queues itself");
  }
  if (state_.routing.detour == RoutingPlan::Detour::never || state_.routes == nullptr) return;
  if (state_.routes->intermediates() > 0) return;
  (policy != nullptr ? *policy : node)
      .fail(
          "the topology has no intermediates to route packets over; topologies with intermediates: torus, "
          "hyperx, dragonfly, dragonfly_plus");
}

void Fabric::build_choices(std::uint64_t seed) {
  if (!routes_packets()) return;
  for (NodeId id = 0; id < graph_.node_count(); ++id) {
    state_.turns.push_back(0);
    state_.choices.emplace_back(seed, "spray", graph_.node_number(id));
  }
  build_routers(seed);
  if (state_.routing.freedom() == RoutingFreedom::adaptive && state_.routes != nullptr)
    state_.adaptive_channel = state_.routes->adaptive_channel();
}

void Fabric::build_routers(std::uint64_t seed) {
  if (state_.routing.choice != RoutingPlan::Choice::own) return;
  state_.tags = true;
  state_.routers.resize(graph_.node_count());
  for (NodeId id = 0; id < graph_.node_count(); ++id) {
    if (!is_switch(graph_, id)) continue;
    state_.routers[id] =
        routing_->make_switch({graph_, id, RandomStream(seed, "router", graph_.node_number(id))});
    NETSIM_CHECK(state_.routers[id] != nullptr, "a routing policy with Choice::own makes no SwitchRouter");
  }
}

void Fabric::build_ports(std::uint64_t seed) {
  const auto discipline =
      Registry<QueueDiscipline>::instance().create(state_.rules.front().switches.scheduler, "strict");
  const DisciplinePlan plan = discipline->compile(state_.classes);
  state_.arbiter = ClassArbiter(plan, state_.ports.size(), state_.classes, state_.channels);
  std::vector<Markers> markers;
  for (const SwitchRules& rules : state_.rules) markers.push_back(make_markers(rules));
  for (PortId id = 0; id < graph_.port_count(); ++id) {
    state_.marking[id].random = RandomStream(seed, "ecn", graph_.port_number(id));
    const Markers& here = markers[state_.rules_of_port[id]];
    const auto own = here.tiers.find(graph_.node(graph_.port(id).node).tier);
    build_port(id, own != here.tiers.end() ? *own->second : *here.common);
    if (plan.own_queues > 0 && state_.at_switch(id))
      build_scheduler(id, *discipline, plan.own_queues,
                      RandomStream(seed, "scheduler", graph_.port_number(id)));
  }
  for (PortId id = 0; id < graph_.port_count(); ++id) set_passage(state_, id);
}

Fabric::Markers Fabric::make_markers(const SwitchRules& rules) {
  const auto make = [](const ConfigNode& marker) {
    return Registry<Marker>::instance().create(marker, "red");
  };
  Markers markers{make(rules.switches.marker), {}};
  for (const auto& [tier, own] : rules.tiers) markers.tiers[tier] = make(own.marker);
  return markers;
}

void Fabric::build_port(PortId id, const Marker& marker) {
  const LinkSpec& link = graph_.port(id).link;
  fabric::Port& p = state_.ports[id];
  p.origin = Origin(id);
  p.overhead = static_cast<std::uint16_t>(link.overhead);
  state_.links[id].delay = link.delay;
  set_rate(state_, id, link.rate);
  if (!state_.at_switch(id)) return;
  fabric::Marking& marking = state_.marking[id];
  RedLine& red = marking.red;
  red = marker.compile(link.rate);
  if (red.own) {
    red = {};
    marking.own = marker.make_port({link.rate, state_.classes, marking.random});
    NETSIM_CHECK(marking.own != nullptr, "a marker with RedLine::own makes no PortMarker");
    p.flags |= fabric::kOwnMarker;
    state_.tags = true;
  }
  if (red.at_enqueue) p.flags |= fabric::kMarksAtEnqueue;
  for (std::uint32_t priority = kCnpPriority; priority < state_.priorities; ++priority)
    state_.queue(id, priority).mark_above = static_cast<std::uint32_t>(std::min<Bytes>(red.kmin, UINT32_MAX));
  if (state_.arbiter.kind() != DisciplinePlan::Kind::strict || state_.channels > 1)
    p.flags |= fabric::kArbitrated;
  if (state_.adaptive_channel != kNoId) p.flags |= fabric::kEscapes;
}

// Gives the port a scheduler. Packets that may escape move between ports by the order of their arrival, so
// that no other order fits them.
void Fabric::build_scheduler(PortId id, const QueueDiscipline& discipline, std::uint32_t queues,
                             const RandomStream& random) {
  NETSIM_CHECK(queues <= kMaxOwnQueues, "a queue discipline asks for too many queues");
  if (state_.adaptive_channel != kNoId) {
    state_.rules.front().switches.scheduler.fail(
        "a queue discipline with queues of its own does not fit routing packet by packet with escape "
        "channels; "
        "allowed with this routing: strict, drr and vl_arbitration");
  }
  auto scheduler = discipline.make_port({graph_.port(id).link.rate, state_.classes, random});
  NETSIM_CHECK(scheduler != nullptr, "a queue discipline with own_queues makes no PortScheduler");
  state_.scheduled.resize(graph_.port_count());
  state_.scheduled[id] = std::make_unique<fabric::ScheduledPort>(
      fabric::ScheduledPort{PortQueues(state_.classes, state_.data_queues, queues), std::move(scheduler)});
  state_.ports[id].flags |= fabric::kOwnScheduler | fabric::kArbitrated;
  state_.tags = true;
}

void Fabric::build_parts(const Partition& partition) {
  for (PortId id = 0; id < graph_.port_count(); ++id) {
    const PortSpec& spec = graph_.port(id);
    state_.far_set[id] = partition.set_of(spec.peer_node);
    if (state_.far_set[id] != partition.set_of(spec.node)) state_.ports[id].flags |= fabric::kLeavesSet;
    // A message that the NIC has received is complete for the GPU when its last packet has arrived.
    if (spec.link.kind == LinkKind::pcie && graph_.node(spec.peer_node).kind == NodeKind::gpu)
      state_.ports[id].flags |= fabric::kOnlyLast;
  }
  for (std::uint32_t set = 0; set < engine_.sets(); ++set)
    shards_.push_back(std::make_unique<FabricShard>(engine_.set(set), state_));
}

void Fabric::enable_telemetry() {
  enable_timestamps();
  for (PortId id = 0; id < graph_.port_count(); ++id) {
    if (state_.at_switch(id) && state_.rules_at(id).telemetry) state_.ports[id].flags |= fabric::kTelemetry;
  }
}

void Fabric::enable_timestamps() {
  state_.telemetry = true;
  for (auto& shard : shards_) shard->packets().enable_telemetry();
}

void Fabric::enable_traces() {
  for (auto& shard : shards_) shard->packets().enable_traces();
}

void Fabric::set_routes(const Routes* routes) {
  if (routes == state_.routes) return;
  state_.routes = routes;
  constexpr std::uint32_t kMostLooks = 8;  // circuits may change thousands of times
  if (!circles_.empty() || routes_looked_at_ == kMostLooks) return;
  ++routes_looked_at_;
  if (std::string found = find_circles(); !found.empty())
    circles_.push_back("while links were down, or circuits had changed, " + found);
}

// Returns a description of a cycle in which lossless packets can wait. Empty if there is none or the check is
// off.
std::string Fabric::find_circles() const {
  if (deadlock_check_ == DeadlockCheck::off || state_.routes == nullptr) return "";
  const std::vector<bool> lossy = state_.lossy_links();
  if (!lossy.empty() && std::find(lossy.begin(), lossy.end(), false) == lossy.end()) return "";
  const std::vector<std::vector<PortId>> fixed = prescribed_paths(graph_, *routing_);
  if (fixed.empty() && *state_.routes->free_of_cycles() != '\0') return "";
  const DependencyCycle found =
      find_cycle(graph_, *state_.routes, state_.routing.freedom(), fixed, kEffort, lossy);
  if (found.hops.empty()) return "";
  return fmt::format("lossless packets can wait for each other in a cycle, which is a deadlock: {}",
                     describe(found, graph_, state_.channels > 1));
}

void Fabric::check_circles(const ConfigNode& node) {
  std::string found = find_circles();
  if (found.empty()) return;
  if (deadlock_check_ == DeadlockCheck::note) return circles_.push_back(std::move(found));
  node.fail(found +
            "; allowed: more virtual channels (`channels` of a topology that has them), routes without "
            "cycles, flow_control: none, or network.deadlock_check: note or off");
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

std::vector<PortId> Fabric::ports_of_hops(std::uint32_t first) const {
  std::vector<PortId> ports;
  for (std::size_t i = first; is_port_step(state_.paths[i]); ++i)
    ports.push_back(port_of_step(state_.paths[i]));
  return ports;
}

std::uint32_t Fabric::route_step(NodeId destination, std::uint64_t flow) {
  const std::size_t index = state_.routed.grow(1);
  state_.routed[index] = {flow, destination, kNoIndex};
  return make_step(StepKind::route, static_cast<std::uint32_t>(index));
}

// The step's index is read again at every hop.
void Fabric::set_route_step(std::uint32_t step, std::uint32_t index) {
  state_.routed[step & ((1U << kStepShift) - 1)].step = index;
}

}  // namespace netsim
