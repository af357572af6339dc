#include "sim/network/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/core/errors.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

// Packet buffers of switch chips by the bandwidth of all their ports: Broadcom's Trident 3 (which HPCC's
// simulations have too), Tomahawk 2, 3, 4 and 5 (data sheets of switches made of them, as collected by J.
// Warner, UC Santa Cruz, people.ucsc.edu/~warner/buffer.html).
struct Chip {
  BitRate bandwidth;
  Bytes buffer;
};
constexpr std::array kChips{Chip{3'200 * kGbps, 32 * kMegabyte}, Chip{6'400 * kGbps, 42 * kMegabyte},
                            Chip{12'800 * kGbps, 64 * kMegabyte}, Chip{25'600 * kGbps, 113 * kMegabyte},
                            Chip{51'200 * kGbps, 165 * kMegabyte}};
// InfiniBand's flow control packet: 6 B and a delimiter at both ends (InfiniBand Architecture
// Specification 1.4, volume 1, section 7.9.4).
constexpr Bytes kCreditFrameBytes = 8;

}  // namespace

const Parameters<FabricParameters>& fabric_parameters() {
  using S = SwitchParameters;
  // Alpha, reserve and resume offset as in HPCC's ns-3 switch (Li et al., SIGCOMM 2019; switch-mmu.cc):
  // dynamic threshold free/8, 4 KB reserve, resume 3 KB below.
  static const auto switches =
      Parameters<S>()
          .bytes(
              "buffer", &S::buffer, {0, 1000 * kGigabyte},
              "shared packet buffer of a switch; 0: as switch chips have it, by the bandwidth of all ports: "
              "32 MB up to 3.2 Tb/s, 42 up to 6.4, 64 up to 12.8, 113 up to 25.6, 165 up to 51.2, beyond in "
              "proportion; and more where the headroom of long links would leave less than half of it to "
              "share")
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
              "when a switch passes a packet on: when it is complete, or after its header where no link of "
              "the switch is faster than the one it comes from")
          .bytes("header", &S::header, {1, 65536},
                 "cut_through: first bytes of a packet (without preamble and gap) that must have arrived, or "
                 "all of a shorter one; 64 B: headers up to those of the transport, a minimum Ethernet frame")
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
                "at: 1 ms}; outages of one link add up; classes with flow control need both directions")
          .time("detection_delay", &FabricParameters::detection_delay, {0, 1000 * kSecond},
                "from a link's going down or coming up until routes follow")
          .time("transmission_resolution", &FabricParameters::transmission_resolution, {0, 1 * kMicrosecond},
                "serialisation and pacing times are rounded to multiples of it, as a simulator with a clock "
                "of 1 ns "
                "(ns-3) does; 0: exact, to the picosecond");
  return parameters;
}

FabricState::FabricState(const Graph& graph_in, const SwitchParameters& parameters_in)
    : graph(graph_in),
      parameters(parameters_in),
      classes(static_cast<std::uint32_t>(parameters.classes)),
      priorities(kDataPriority + classes),
      ports(graph.port_count()),
      far_set(ports.size(), 0),
      queues(ports.size() * priorities),
      paused_since(queues.size()),
      ingress(ports.size() * classes),
      rare(ports.size()),
      paths(std::size_t{1} << 32),
      routed(std::size_t{1} << kStepShift) {
  if (parameters.queue_limit != 0) queue_limit = static_cast<std::uint32_t>(parameters.queue_limit);
}

Fabric::Fabric(Engine& engine, const Graph& graph, const Partition& partition,
               const FabricParameters& parameters, const ConfigNode& node, Bytes largest_packet,
               std::uint64_t seed)
    : engine_(engine),
      graph_(graph),
      state_(graph, parameters.switches),
      largest_packet_(largest_packet),
      seed_(hash_combine(RandomStream(seed, "ecmp").key(), 0)),
      routing_(Registry<RoutingPolicy>::instance().create(parameters.switches.routing, "ecmp")),
      faults_(read_faults(parameters.faults, graph, parameters.detection_delay)),
      known_down_(graph.port_count(), false) {
  state_.resolution = parameters.transmission_resolution;
  if (state_.parameters.queue_limit != 0 && state_.parameters.flow_control == FlowControl::credits) {
    node.fail("queue_limit drops packets, flow_control: credits never does: only one of them is allowed");
  }
  routing_->check(graph);
  state_.packet_routing = routing_->per_packet();
  const auto discipline = Registry<QueueDiscipline>::instance().create(state_.parameters.scheduler, "strict");
  state_.arbiter = Arbiter(discipline->compile(state_.classes), state_.ports.size());
  const auto marker = Registry<Marker>::instance().create(state_.parameters.marker, "red");
  for (PortId id = 0; id < graph.port_count(); ++id) {
    state_.rare[id].random = RandomStream(seed, "ecn", id);
    build_port(id, *marker);
    watch_after_ = std::max(watch_after_, 4 * graph.port(id).link.delay);
  }
  for (PortId id = 0; id < graph.port_count(); ++id) set_forwarding(id);
  for (NodeId id = 0; routes_packets() && id < graph.node_count(); ++id) {
    state_.turns.push_back(0);
    state_.choices.emplace_back(seed, "spray", id);
  }
  build_classes(node);
  build_buffers(node);
  build_credits(node);
  build_faults(seed);
  build_parts(partition);
  engine_.set_monitor(watch_after_ / 2, [this](Time now, bool idle) { look_for_deadlock(now, idle); });
}

void Fabric::build_parts(const Partition& partition) {
  for (PortId id = 0; id < graph_.port_count(); ++id) {
    const PortSpec& spec = graph_.port(id);
    state_.far_set[id] = partition.set_of(spec.peer_node);
    if (state_.far_set[id] != partition.set_of(spec.node)) state_.ports[id].flags |= fabric::kCut;
    // A GPU hears of a message that the NIC has received when its last packet is there.
    if (spec.link.kind == LinkKind::pcie && graph_.node(spec.peer_node).kind == NodeKind::gpu)
      state_.ports[id].flags |= fabric::kOnlyLast;
  }
  for (std::uint32_t set = 0; set < engine_.sets(); ++set)
    parts_.push_back(std::make_unique<FabricPart>(engine_.set(set), state_));
}

void Fabric::build_port(PortId id, const Marker& marker) {
  const PortSpec& spec = graph_.port(id);
  Port& p = state_.ports[id];
  fabric::Rare& rare = state_.rare[id];
  p.origin = Origin(id);
  p.overhead = static_cast<std::uint16_t>(spec.link.overhead);
  rare.link_delay = spec.link.delay;
  set_rate(id, spec.link.rate);
  if (!state_.at_switch(id)) return;
  rare.red = marker.compile(spec.link.rate);
  if (rare.red.at_enqueue) p.flags |= fabric::kMarksAtEnqueue;
  for (std::uint32_t priority = kCnpPriority; priority < state_.priorities; ++priority) {
    state_.queue(id, priority).mark_above =
        static_cast<std::uint32_t>(std::min<Bytes>(rare.red.kmin, UINT32_MAX));
  }
  if (state_.arbiter.kind() != DisciplinePlan::Kind::strict) p.flags |= fabric::kArbitrated;
}

// How long after its transmission's end, start or header a packet from `id` may go on at the far end.
void Fabric::set_forwarding(PortId id) {
  const PortSpec& spec = graph_.port(id);
  Port& p = state_.ports[id];
  fabric::Rare& rare = state_.rare[id];
  p.delay = rare.link_delay;
  rare.cut_through = spec.link.cut_through;
  Time header = 0;
  if (graph_.node(spec.peer_node).kind == NodeKind::fabric_switch) {
    p.delay += state_.parameters.latency;
    if (state_.parameters.forwarding == Forwarding::cut_through &&
        rare.rate >= fastest_port(spec.peer_node)) {
      rare.cut_through = true;
      header = transmission_time(state_.parameters.header, rare.rate);
    }
  }
  rare.header = header;
  p.flags &= ~(fabric::kCutThrough | fabric::kReadsHeader);
  if (rare.cut_through) p.flags |= fabric::kCutThrough;
  if (header != 0) p.flags |= fabric::kReadsHeader;
}

BitRate Fabric::fastest_port(NodeId node) const {
  BitRate fastest = 0;
  for (const PortId port : graph_.ports_of(node)) fastest = std::max(fastest, state_.rare[port].rate);
  return fastest;
}

void Fabric::set_rate(PortId port, BitRate rate) {
  const std::int64_t ps = 8 * kSecond / rate;
  fabric::Rare& rare = state_.rare[port];
  if (rare.rate != 0) {
    rare.busy_before = counters(port).busy;
    rare.wire_bytes_before = state_.ports[port].wire_bytes;
  }
  rare.rate = rate;
  state_.ports[port].ps_per_byte = state_.resolution == 0 && 8 * kSecond % rate == 0 && ps <= UINT16_MAX
                                       ? static_cast<std::uint16_t>(ps)
                                       : std::uint16_t{0};
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

// What can still arrive after the pause is decided: the pause frame waits for one packet that is being sent
// the other way, takes its own time and the link's; meanwhile and until its last bit has come the sender
// fills the link; and the sender finishes the packet it had begun. C (2 t_prop + t_response) + 2 MTU + PFC
// frame, as in the survey of switch guides (papers: headroom >= C (2 t_prop + t_proc) + 2 MTU + 64 B), in
// bytes as buffers count them, plus the packet that crossed the threshold.
Bytes Fabric::computed_headroom(PortId port) const {
  const LinkSpec& link = graph_.port(port).link;
  const LinkSpec& back = graph_.port(port ^ 1U).link;
  __extension__ using Wide = __int128;
  const Time loop_time = link.delay + state_.parameters.latency + back.delay +
                         state_.parameters.pfc_response +
                         transmission_time(largest_packet_ + back.overhead, back.rate) +
                         transmission_time(state_.parameters.pfc_frame + back.overhead, back.rate);
  const Wide in_flight = static_cast<Wide>(loop_time) * link.rate / (8 * kSecond);
  return static_cast<Bytes>(in_flight) + 2 * largest_packet_;
}

void Fabric::build_classes(const ConfigNode& node) {
  const ConfigNode& given = state_.parameters.lossless;
  if (state_.parameters.flow_control != FlowControl::pfc) {
    if (!given.is_null()) given.fail("'lossless' chooses classes for pfc; flow_control is something else");
    return;
  }
  const std::uint32_t all = ((1U << state_.classes) - 1) << kDataPriority;
  if (given.is_null() || (given.is_scalar() && given.text() == "all")) {
    state_.lossless = all;
  } else if (given.is_sequence()) {
    for (const ConfigNode& item : given.items()) {
      const std::int64_t c = read_integer(item);
      if (c < 0 || c >= state_.classes) out_of_range(item, "0", std::to_string(state_.classes - 1));
      state_.lossless |= 1U << (kDataPriority + static_cast<std::uint32_t>(c));
    }
  } else if (!given.is_scalar() || given.text() != "none") {
    (given.is_null() ? node : given).fail("expected all, none or a list of classes");
  }
}

// That of the smallest chip with this switch's bandwidth.
Bytes Fabric::chip_buffer(NodeId node) const {
  BitRate bandwidth = 0;
  for (const PortId port : graph_.ports_of(node)) bandwidth += graph_.port(port).link.rate;
  for (const Chip& chip : kChips) {
    if (bandwidth <= chip.bandwidth) return chip.buffer;
  }
  __extension__ using Wide = __int128;
  return static_cast<Bytes>(static_cast<Wide>(kChips.back().buffer) * bandwidth / kChips.back().bandwidth);
}

void Fabric::build_buffers(const ConfigNode& node) {
  for (NodeId id = 0; id < graph_.node_count(); ++id) {
    if (graph_.node(id).kind == NodeKind::fabric_switch) build_buffer(id, node);
  }
}

void Fabric::build_buffer(NodeId id, const ConfigNode& node) {
  const auto index = static_cast<std::uint32_t>(state_.buffers.size());
  Bytes set_aside = 0;
  for (const PortId port : graph_.ports_of(id)) {
    state_.ports[port].buffer = index;
    state_.ports[port].flags |= fabric::kBuffered;
    for (std::uint32_t priority = kDataPriority; priority < kDataPriority + state_.classes; ++priority) {
      if (!state_.is_lossless(priority)) continue;
      fabric::Ingress& in = state_.ingress[state_.class_index(port ^ 1U, priority)];
      in.headroom =
          state_.parameters.headroom != 0 ? state_.parameters.headroom : computed_headroom(port ^ 1U);
      set_aside += in.headroom + state_.parameters.reserve;
    }
  }
  const Bytes chip = chip_buffer(id), computed = std::max(chip, set_aside + chip / 2);
  const Bytes size = state_.parameters.buffer != 0 ? state_.parameters.buffer : computed;
  if (set_aside >= size) {
    const ConfigNode* given = node.find("buffer");
    (given != nullptr ? *given : node)
        .fail(
            fmt::format("{} B do not hold the headroom and reserves of {}'s {} links, {} B: allowed is more "
                        "than that, 0 (computed: {} B), or a smaller headroom or reserve",
                        size, graph_.node(id).name, graph_.ports_of(id).size(), set_aside, computed));
  }
  state_.buffers.push_back(
      {size - set_aside, 0, static_cast<std::int64_t>(state_.parameters.alpha * 65536.0)});
}

// Credits of links into switches, where the network works so, and of links that bring their own (NVLink).
void Fabric::build_credits(const ConfigNode& node) {
  const bool switches = state_.parameters.flow_control == FlowControl::credits;
  for (PortId id = 0; id < graph_.port_count(); ++id) {
    const PortSpec& spec = graph_.port(id);
    const bool into_switch = switches && graph_.node(spec.peer_node).kind == NodeKind::fabric_switch;
    if (!into_switch && spec.link.credits == 0) continue;
    if (state_.credits.empty()) state_.credits.resize(state_.ingress.size());
    const Bytes largest = into_switch ? largest_packet_ : spec.link.mtu;
    Bytes room = into_switch ? state_.parameters.credit_buffer : spec.link.credits;
    if (room == 0) {
      // A round trip's worth, with a packet in the way at each end; a quarter more, because credits come back
      // a quarter of the buffer at a time.
      const LinkSpec& back = graph_.port(id ^ 1U).link;
      __extension__ using Wide = __int128;
      const Time loop_time = spec.link.delay + back.delay + state_.parameters.latency +
                             transmission_time(largest + back.overhead, back.rate) +
                             transmission_time(largest + spec.link.overhead, spec.link.rate);
      const Wide in_flight = static_cast<Wide>(loop_time) * spec.link.rate / (8 * kSecond);
      room = (static_cast<Bytes>(in_flight) + 2 * largest) * 4 / 3 + 1;
    }
    if (room < 2 * largest) {
      node.fail(fmt::format("a credit buffer of {} B for link {} does not hold two packets of {} B", room,
                            graph_.port_name(id), largest));
    }
    state_.ports[id].flags |= fabric::kCredits;
    for (std::uint32_t priority = kDataPriority; priority < kDataPriority + state_.classes; ++priority) {
      state_.ingress[state_.class_index(id, priority)].headroom = room;
      state_.credits[state_.class_index(id, priority)] = {room, largest, into_switch ? kCreditFrameBytes : 0,
                                                          room / 4};
    }
    for (const PortId next : graph_.ports_of(spec.peer_node))
      state_.ports[next].flags |= fabric::kReturnsCredits;
  }
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
  state_.routed[index] = {destination, fabric::kNone};
  return make_step(StepKind::route, static_cast<std::uint32_t>(index));
}

// The step is read again at every hop.
void Fabric::set_route_step(std::uint32_t step, std::uint32_t index) {
  state_.routed[step & ((1U << kStepShift) - 1)].step = index;
}

}  // namespace netsim
