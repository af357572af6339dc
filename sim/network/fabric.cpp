#include "sim/network/fabric.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/registry.h"

namespace netsim {
namespace {

// What a cut-through switch reads before it forwards: headers up to those of the transport, a minimum
// Ethernet frame's worth.
constexpr Bytes kCutThroughBytes = 64;

}  // namespace

const Parameters<FabricParameters>& fabric_parameters() {
  using S = SwitchParameters;
  // Buffer, alpha, reserve and resume offset as in HPCC's ns-3 switch (Li et al., SIGCOMM 2019;
  // switch-mmu.cc): dynamic threshold free/8, 4 KB reserve, resume 3 KB below.
  static const auto switches =
      Parameters<S>()
          .bytes("buffer", &S::buffer, {1, 1000 * kGigabyte}, "shared packet buffer of a switch")
          .real("alpha", &S::alpha, {1.0 / 65536, 1024},
                "dynamic threshold: a link (lossless) or egress queue (lossy) may use alpha x the free "
                "shared buffer")
          .bytes("reserve", &S::reserve, {0, 1000 * kGigabyte},
                 "buffer set aside for each link into a switch and lossless class, not shared")
          .bytes("resume_offset", &S::resume_offset, {0, 1000 * kGigabyte},
                 "a paused link is resumed when it uses this much less than the threshold")
          .choice(
              "flow_control", &S::flow_control,
              {{"pfc", FlowControl::pfc}, {"credits", FlowControl::credits}, {"none", FlowControl::none}},
              "pause frames for lossless classes (Ethernet), credits for each link and class (InfiniBand), "
              "or dropping above the threshold")
          .bytes(
              "headroom", &S::headroom, {0, 1000 * kGigabyte},
              "pfc: buffer set aside for each link to hold what arrives after a pause was sent; 0: computed "
              "from the link's speed and delay")
          .time("pfc_response", &S::pfc_response, {0, 1 * kSecond},
                "time a paused sender needs to stop, for the computed headroom")
          .bytes("pfc_frame", &S::pfc_frame, {1, 1 * kMegabyte}, "size of a PFC frame (64 B: IEEE 802.1Qbb)")
          .bytes("credit_buffer", &S::credit_buffer, {0, 1 * kGigabyte},
                 "credits: buffer of each link and class; 0: computed, as much as keeps the link busy")
          .integer("classes", &S::classes, {1, kMaxClasses},
                   "data classes (priorities, virtual lanes): flows choose theirs")
          .list("lossless", &S::lossless, "pfc: which classes are lossless: all (default), none, or a list")
          .component("scheduler", &S::scheduler, "queue_discipline", "strict",
                     "which class a port serves next")
          .component("marker", &S::marker, "marker", "red", "ECN marking at each switch port")
          .component("routing", &S::routing, "routing_policy", "ecmp", "choice among equal-cost next hops")
          .choice(
              "forwarding", &S::forwarding,
              {{"store_and_forward", Forwarding::store_and_forward},
               {"cut_through", Forwarding::cut_through}},
              "when a switch passes a packet on: when it is complete, or after its first 64 B where no link "
              "of the switch is faster than the one it comes from")
          .time("latency", &S::latency, {0, 1 * kSecond},
                "a packet's way through a switch besides queueing and transmission")
          .integer("queue_limit", &S::queue_limit, {0, UINT32_MAX - 1},
                   "packets that may wait in an egress queue, further ones are dropped; 0: no limit");
  static const auto parameters =
      Parameters<FabricParameters>()
          .section("switch", &FabricParameters::switches, switches,
                   "buffers, flow control, ECN marking, scheduling and routing of the switches")
          .list("faults", &FabricParameters::faults,
                "what happens to links: {link: a-b or a->b, loss: 1e-3, down: 1 ms, up: 2 ms, rate: 25 Gbps, "
                "at: "
                "1 ms}")
          .time("detection_delay", &FabricParameters::detection_delay, {0, 1000 * kSecond},
                "from a link's going down or coming up until routes follow")
          .time("transmission_resolution", &FabricParameters::transmission_resolution, {0, 1 * kMicrosecond},
                "serialisation and pacing times are rounded to multiples of it, as a simulator with a clock "
                "of 1 ns "
                "(ns-3) does; 0: exact, to the picosecond");
  return parameters;
}

Fabric::Fabric(EventLoop& loop, const Graph& graph, const FabricParameters& parameters,
               const ConfigNode& node, Bytes largest_packet, std::uint64_t seed)
    : loop_(loop),
      graph_(graph),
      parameters_(parameters.switches),
      detection_delay_(parameters.detection_delay),
      resolution_(parameters.transmission_resolution),
      largest_packet_(largest_packet),
      seed_(hash_combine(RandomStream(seed, "ecmp").key(), 0)),
      classes_(static_cast<std::uint32_t>(parameters_.classes)),
      priorities_(kDataPriority + classes_),
      faults_(read_faults(parameters.faults, graph, parameters.detection_delay)) {
  const std::size_t n = graph.port_count();
  ports_.resize(n);
  ports_base_ = ports_.data();
  queues_.resize(n * priorities_);
  data_queues_base_ = queues_.data() + n * kDataPriority;
  paused_since_.resize(n * priorities_);
  ingress_.resize(n * classes_);
  rare_.resize(n);
  known_down_.resize(n, false);
  if (parameters_.queue_limit != 0 && parameters_.flow_control == FlowControl::credits) {
    node.fail("queue_limit drops packets, flow_control: credits never does: only one of them is allowed");
  }
  if (parameters_.queue_limit != 0) queue_limit_ = static_cast<std::uint32_t>(parameters_.queue_limit);
  routing_ = Registry<RoutingPolicy>::instance().create(parameters_.routing, "ecmp");
  routing_->check(graph);
  packet_routing_ = routing_->per_packet();
  const auto discipline = Registry<QueueDiscipline>::instance().create(parameters_.scheduler, "strict");
  arbiter_ = Arbiter(discipline->compile(classes_), n);
  const auto marker = Registry<Marker>::instance().create(parameters_.marker, "red");
  for (PortId id = 0; id < n; ++id) {
    rare_[id].random = RandomStream(seed, "ecn", id);
    build_port(id, *marker);
    watch_after_ = std::max(watch_after_, 4 * graph.port(id).link.delay);
  }
  for (PortId id = 0; id < n; ++id) set_forwarding(id);
  for (NodeId id = 0; routes_packets() && id < graph.node_count(); ++id) {
    turns_.push_back(0);
    choices_.emplace_back(seed, "spray", id);
  }
  build_classes(node);
  build_buffers(node);
  build_credits(node);
  build_faults(seed);
  set_handlers();
}

void Fabric::set_handlers() {
  const auto handle = [this]<void (Fabric::*Method)(const Event&)>(EventKind kind) {
    loop_.set_handler(
        kind, [](void* self, const Event& e) { (static_cast<Fabric*>(self)->*Method)(e); }, this);
  };
  handle.operator()<&Fabric::on_arrival>(EventKind::arrival);
  handle.operator()<&Fabric::on_departure>(EventKind::departure);
  handle.operator()<&Fabric::on_link_control>(EventKind::link_control);
  handle.operator()<&Fabric::on_route>(EventKind::route);
  handle.operator()<&Fabric::on_link_state>(EventKind::link_state);
  handle.operator()<&Fabric::on_watch>(EventKind::watch);
  loop_.set_prefetch(EventKind::arrival, &ports_base_, sizeof(Port), packets_.base(), sizeof(Packet));
  loop_.set_prefetch(EventKind::departure, &ports_base_, sizeof(Port), nullptr, 0);
  loop_.prefetch_also(EventKind::arrival, &data_queues_base_, sizeof(Queue));
  loop_.prefetch_also(EventKind::departure, &data_queues_base_, sizeof(Queue));
}

void Fabric::build_port(PortId id, const Marker& marker) {
  const PortSpec& spec = graph_.port(id);
  Port& p = ports_[id];
  Rare& rare = rare_[id];
  p.origin = Origin(id);
  p.overhead = static_cast<std::uint16_t>(spec.link.overhead);
  rare.link_delay = spec.link.delay;
  set_rate(id, spec.link.rate);
  if (!at_switch(id)) return;
  rare.red = marker.compile(spec.link.rate);
  if (rare.red.at_enqueue) p.flags |= kMarksAtEnqueue;
  for (std::uint32_t priority = kCnpPriority; priority < priorities_; ++priority) {
    queue(id, priority).mark_above = static_cast<std::uint32_t>(std::min<Bytes>(rare.red.kmin, UINT32_MAX));
  }
  if (arbiter_.kind() != DisciplinePlan::Kind::strict) p.flags |= kArbitrated;
}

// How long after its transmission's end, or start, a packet from `id` may go on at the far end.
void Fabric::set_forwarding(PortId id) {
  const PortSpec& spec = graph_.port(id);
  Port& p = ports_[id];
  p.delay = rare_[id].link_delay;
  p.flags = spec.link.cut_through ? p.flags | kCutThrough : p.flags & ~kCutThrough;
  if (graph_.node(spec.peer_node).kind != NodeKind::fabric_switch) return;
  p.delay += parameters_.latency;
  BitRate fastest = 0;
  for (const PortId next : graph_.ports_of(spec.peer_node)) fastest = std::max(fastest, rare_[next].rate);
  if (parameters_.forwarding == Forwarding::cut_through && fastest <= rare_[id].rate) {
    p.flags |= kCutThrough;
    p.delay += transmission_time(kCutThroughBytes + spec.link.overhead, rare_[id].rate);
  }
}

void Fabric::set_rate(PortId port, BitRate rate) {
  const std::int64_t ps = 8 * kSecond / rate;
  rare_[port].rate = rate;
  ports_[port].ps_per_byte = resolution_ == 0 && 8 * kSecond % rate == 0 && ps <= UINT16_MAX
                                 ? static_cast<std::uint16_t>(ps)
                                 : std::uint16_t{0};
}

void Fabric::enable_telemetry() {
  packets_.enable_telemetry();
  for (PortId id = 0; id < ports_.size(); ++id) {
    if (at_switch(id)) ports_[id].flags |= kTelemetry;
  }
}

std::uint32_t Fabric::add_path(const std::vector<std::uint32_t>& steps) {
  const auto first = static_cast<std::uint32_t>(paths_.size());
  paths_.insert(paths_.end(), steps.begin(), steps.end());
  return first;
}

std::span<const PortId> Fabric::ports_of_path(std::uint32_t first) const {
  std::size_t end = first;
  while (paths_[end] >> kStepShift == static_cast<std::uint32_t>(StepKind::port)) ++end;
  return {paths_.data() + first, end - first};
}

// What only some ports have: credits, faults, telemetry. False: the packet was lost on the link.
bool Fabric::transmit_special(PortId port, std::uint32_t packet, std::int64_t wire, Time arrival) {
  Port& p = ports_[port];
  Packet& k = packets_[packet];
  Rare& rare = rare_[port];
  if ((p.flags & kFaulty) != 0) {
    const bool cut = rare.down || arrival > rare.next_down;
    if (cut ||
        (rare.loss > 0 && k.kind != PacketKind::link_control && rare.loss_random.uniform() < rare.loss)) {
      ++rare.lost;
      // Credits are totals in InfiniBand's frames: what one that is lost would have given, a later one gives.
      if (k.kind == PacketKind::link_control && k.psn != 0)
        ingress_[class_index(port ^ 1U, k.message >> 2)].headroom_used += k.psn;
      if ((p.flags & kTellsDepartures) != 0 && k.kind == PacketKind::data) source_->departed(port, k.bytes);
      packets_.release(packet);
      return false;
    }
  }
  if (k.kind == PacketKind::link_control) return true;
  if ((p.flags & kCredits) != 0) consume_credit(port, k.priority, k.bytes);
  if ((p.flags & kTelemetry) != 0 && k.kind == PacketKind::data) {
    Telemetry& t = packets_.telemetry(packet);
    if (t.hops < kTelemetryHops)
      t.hop[t.hops++] = {loop_.now(), p.wire_bytes - wire, queued(port), rare.rate};
  }
  return true;
}

void Fabric::on_arrival(const Event& event) {
  Port& p = ports_[event.target];
  p.digest = digest(p.digest, event);
  enqueue(event.target, static_cast<std::uint32_t>(event.argument));
}

void Fabric::on_departure(const Event& event) {
  const PortId port = event.target;
  Port& p = ports_[port];
  p.digest = digest(p.digest, event);
  const std::uint32_t ready = p.waiting & ~static_cast<std::uint32_t>(p.paused);
  if (ready != 0) {
    auto priority = static_cast<std::uint32_t>(std::countr_zero(ready));
    if ((p.flags & kArbitrated) != 0 && priority >= kDataPriority) [[unlikely]] {
      priority = kDataPriority + arbiter_.select(port, ready >> kDataPriority, [&](std::uint32_t c) {
        return packets_[queue(port, kDataPriority + c).head].bytes;
      });
    }
    const std::uint32_t packet = dequeue(port, priority);  // may queue a frame here: this departure serves it
    p.wake = false;
    transmit(port, packet);
    if ((p.waiting & ~p.paused) != 0 || (p.flags & kHasSource) != 0) wake(port);
    return;
  }
  p.wake = false;
  if ((p.flags & kHasSource) != 0) source_->port_free(port);
}

std::uint32_t Fabric::dequeue(PortId port, std::uint32_t priority) {
  Port& p = ports_[port];
  Queue& q = queue(port, priority);
  const std::uint32_t packet = q.head;
  q.head = packets_[packet].next;
  --q.packets;
  q.bytes -= packets_[packet].bytes;
  if (q.head == kNone) {
    q.tail = kNone;
    p.waiting = static_cast<std::uint8_t>(p.waiting & ~(1U << priority));
    if (priority >= kDataPriority) arbiter_.emptied(port, priority - kDataPriority);
  }
  if ((p.flags & kBuffered) != 0) {
    leave_buffer(port, packets_[packet]);
    if ((p.flags & kMarksAtEnqueue) == 0 && q.bytes > q.mark_above &&
        packets_[packet].kind == PacketKind::data) {
      mark(port, packets_[packet], q.bytes);
    }
  }
  if ((p.flags & kReturnsCredits) != 0) [[unlikely]]
    return_credit(packets_[packet].ingress, priority, packets_[packet].bytes);
  return packet;
}

void Fabric::on_link_control(const Event& event) {
  const PortId port = event.target;
  ports_[port].digest = digest(ports_[port].digest, event);
  const auto priority = static_cast<std::uint32_t>(event.argument >> 2 & 63);
  switch (static_cast<LinkControl>(event.argument & 3)) {
    case LinkControl::pause:
      if ((ports_[port].paused >> priority & 1) != 0) return;
      ++rare_[port].pauses;
      set_paused(port, priority);
      return;
    case LinkControl::resume:
      set_running(port, priority);
      return;
    case LinkControl::credit:
      receive_credit(port, priority, static_cast<Bytes>(event.argument >> 8));
      return;
  }
}

void Fabric::set_paused(PortId port, std::uint32_t priority) {
  ports_[port].paused = static_cast<std::uint8_t>(ports_[port].paused | 1U << priority);
  paused_since(port, priority) = loop_.now();
  watch(port, priority);
}

void Fabric::set_running(PortId port, std::uint32_t priority) {
  Port& p = ports_[port];
  if ((p.paused >> priority & 1) == 0) return;
  p.paused = static_cast<std::uint8_t>(p.paused & ~(1U << priority));
  rare_[port].paused_time += loop_.now() - paused_since(port, priority);
  if (p.waiting != 0 || (p.flags & kHasSource) != 0) wake(port);
}

void Fabric::drop(PortId port, std::uint32_t packet) {
  ++rare_[port].drops;
  const Packet& k = packets_[packet];
  return_credit(k.ingress, k.priority, k.bytes);
  packets_.release(packet);
}

}  // namespace netsim
