#include "sim/network/buffer_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// Packet buffers of switch chips by the bandwidth of all their ports. The chips are Broadcom's Trident 3
// (also used in HPCC's simulations), Tomahawk 2, 3, 4 and 5. The source is data sheets of switches with these
// chips, collected by J. Warner, UC Santa Cruz (people.ucsc.edu/~warner/buffer.html).
struct Chip {
  BitRate bandwidth;
  Bytes buffer;
};
constexpr std::array kChips{Chip{3'200 * kGbps, 32 * kMegabyte}, Chip{6'400 * kGbps, 42 * kMegabyte},
                            Chip{12'800 * kGbps, 64 * kMegabyte}, Chip{25'600 * kGbps, 113 * kMegabyte},
                            Chip{51'200 * kGbps, 165 * kMegabyte}};
// InfiniBand's flow control packet has 6 B and a delimiter at both ends (InfiniBand Architecture
// Specification 1.4, volume 1, section 7.9.4).
constexpr Bytes kCreditFrameBytes = 8;

// Returns the buffer of the smallest chip with this switch's bandwidth. Only circuits that are up at the
// start count, because there are as many ports.
Bytes chip_buffer(const FabricState& state, NodeId node) {
  BitRate bandwidth = 0;
  for (const PortId port : state.graph.ports_of(node)) {
    if (!state.pauses_of(port).circuit_down) bandwidth += state.graph.port(port).link.rate;
  }
  for (const Chip& chip : kChips) {
    if (bandwidth <= chip.bandwidth) return chip.buffer;
  }
  return static_cast<Bytes>(static_cast<Int128>(kChips.back().buffer) * bandwidth / kChips.back().bandwidth);
}

void build_buffer(FabricState& state, NodeId id) {
  const auto index = static_cast<std::uint32_t>(state.buffers.size());
  const SwitchParameters& own = state.of_switch(id);
  const SwitchRules& rules = state.rules_of(id);
  Bytes set_aside = 0;
  for (const PortId port : state.graph.ports_of(id)) {
    state.ports[port].buffer = index;
    state.ports[port].flags |= fabric::kBuffered;
    for (std::uint32_t priority = kDataPriority; priority < state.priorities; ++priority) {
      if ((rules.lossless >> priority & 1) == 0) continue;
      fabric::Ingress& in = state.ingress[state.class_index(port ^ 1U, priority)];
      in.headroom = own.headroom != 0 ? own.headroom : computed_headroom(state, port ^ 1U);
      set_aside += in.headroom + own.reserve;
    }
  }
  const Bytes chip = chip_buffer(state, id), computed = std::max(chip, set_aside + chip / 2);
  const Bytes size = own.buffer != 0 ? own.buffer : computed;
  if (set_aside >= size) {
    const ConfigNode* given = rules.where.find("buffer");
    (given != nullptr ? *given : rules.where)
        .fail(fmt::format("{} B cannot hold the headroom and reserves of {}'s {} links, {} B; allowed: more "
                          "than that, 0 (computed: {} B), or a smaller headroom or reserve",
                          size, state.graph.node(id).name, state.graph.ports_of(id).size(), set_aside,
                          computed));
  }
  state.buffers.push_back(
      {.shared_total = size - set_aside,
       .alpha_2_16 = static_cast<std::int64_t>(own.alpha * 65536.0),
       .reserve = own.reserve,
       .resume_offset = own.resume_offset,
       .lossless = rules.lossless,
       .queue_limit = own.queue_limit != 0 ? static_cast<std::uint32_t>(own.queue_limit) : UINT32_MAX,
       .credits = rules.credits()});
}

// Returns the latency of the switch that the link leads into. Packets on their way to it must still pass it.
Time latency_behind(const FabricState& state, PortId port) {
  return state.of_switch(state.graph.port(port).peer_node).latency;
}

// Returns a bit per priority.
std::uint32_t lossless_of(const FabricState& state, const SwitchParameters& switches) {
  const ConfigNode& given = switches.lossless;
  if (switches.flow_control != FlowControl::pfc) {
    if (!given.is_null()) given.fail("'lossless' chooses classes for pfc, but flow_control is not pfc");
    return 0;
  }
  if (given.is_null() || (given.is_scalar() && given.text() == "all"))
    return ((1U << state.data_queues) - 1) << kDataPriority;
  if (given.is_scalar() && given.text() == "none") return 0;
  if (!given.is_sequence()) given.fail("expected all, none or a list of classes");
  std::uint32_t lossless = 0;
  for (const ConfigNode& item : given.items()) {
    const std::int64_t c = read_integer(item);
    if (c < 0 || c >= state.classes) out_of_range(item, "0", std::to_string(state.classes - 1));
    for (std::uint32_t channel = 0; channel < state.channels; ++channel)
      lossless |= 1U << (kDataPriority + channel * state.classes + static_cast<std::uint32_t>(c));
  }
  return lossless;
}

// Returns the default credit buffer: a round trip's worth, with a packet in the way at each end. It is a
// third larger, because a quarter of the buffer is always returned at once.
Bytes computed_credits(const FabricState& state, PortId port, Bytes largest) {
  const LinkSpec& link = state.graph.port(port).link;
  const LinkSpec& back = state.graph.port(port ^ 1U).link;
  const Time loop_time = link.delay + back.delay + latency_behind(state, port) +
                         transmission_time(largest + back.overhead, back.rate) +
                         transmission_time(largest + link.overhead, link.rate);
  const Int128 in_flight = static_cast<Int128>(loop_time) * link.rate / (8 * kSecond);
  return (static_cast<Bytes>(in_flight) + 2 * largest) * 4 / 3 + 1;
}

}  // namespace

// The headroom holds all bytes that can still arrive after the pause is decided. The pause frame waits for
// one packet that is being sent in its direction, then takes its own time and the link's. Until its last bit
// has arrived the sender fills the link, and it finishes the packet it had begun.
//
// This gives C (2 t_prop + t_response) + 2 MTU + PFC frame, the terms of IEEE 802.1Qbb's annex on buffer
// requirements. Bytes are counted as in buffers. The packet that crossed the threshold is added.
Bytes computed_headroom(const FabricState& state, PortId port) {
  const Graph& graph = state.graph;
  const SwitchRules& rules = state.rules_at(port);
  const Bytes largest_packet = rules.largest_packet;
  const LinkSpec& link = graph.port(port).link;
  const LinkSpec& back = graph.port(port ^ 1U).link;
  const Time loop_time = link.delay + latency_behind(state, port) + back.delay + rules.switches.pfc_response +
                         transmission_time(largest_packet + back.overhead, back.rate) +
                         transmission_time(rules.switches.pfc_frame + back.overhead, back.rate);
  const Int128 in_flight = static_cast<Int128>(loop_time) * link.rate / (8 * kSecond);
  return static_cast<Bytes>(in_flight) + 2 * largest_packet;
}

void build_classes(FabricState& state) {
  for (SwitchRules& rules : state.rules) rules.lossless = lossless_of(state, rules.switches);
}

void build_buffers(FabricState& state) {
  for (NodeId id = 0; id < state.graph.node_count(); ++id) {
    if (is_switch(state.graph, id)) build_buffer(state, id);
  }
}

void build_credits(FabricState& state) {
  for (PortId id = 0; id < state.graph.port_count(); ++id) {
    const PortSpec& spec = state.graph.port(id);
    const SwitchRules& rules = state.rules_at(id);
    const bool into_switch = rules.credits() && is_switch(state.graph, spec.peer_node);
    if (!into_switch && spec.link.credits == 0) continue;
    if (state.credits.empty()) state.credits.resize(state.ingress.size());
    const Bytes largest = into_switch ? rules.largest_packet : spec.link.mtu;
    Bytes room = into_switch ? rules.switches.credit_buffer : spec.link.credits;
    if (room == 0) room = computed_credits(state, id, largest);
    if (room < 2 * largest) {
      rules.where.fail(fmt::format("a credit buffer of {} B for link {} cannot hold two packets of {} B",
                                   room, state.graph.port_name(id), largest));
    }
    state.ports[id].flags |= fabric::kCredits;
    for (std::uint32_t priority = kDataPriority; priority < state.priorities; ++priority) {
      state.ingress[state.class_index(id, priority)].headroom = room;
      state.credits[state.class_index(id, priority)] = {room, largest, into_switch ? kCreditFrameBytes : 0,
                                                        room / 4};
    }
    for (const PortId next : state.graph.ports_of(spec.peer_node))
      state.ports[next].flags |= fabric::kReturnsCredits;
  }
}

}  // namespace netsim
