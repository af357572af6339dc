#include "sim/network/link_state.h"

#include <algorithm>

namespace netsim {
namespace {

// Returns the time of many packets. It is less than 1 ps per packet below the sum of their times.
Time time_at_rate(Bytes wire, BitRate rate) {
  return static_cast<Time>(static_cast<Int128>(wire) * 8 * kSecond / rate);
}

BitRate fastest_port(const FabricState& state, NodeId node) {
  BitRate fastest = 0;
  for (const PortId port : state.graph.ports_of(node)) fastest = std::max(fastest, state.links[port].rate);
  return fastest;
}

}  // namespace

bool LinkState::is_cut(PortId port, const Packet& packet, Time arrival) const {
  const fabric::Link& link = links_[port];
  const bool both = state_.needs_both_ways(port, packet.priority);
  return (both ? link.link_down || arrival > link.link_next_down : link.down || arrival > link.next_down) ||
         arrival > link.circuit_down_at;
}

bool LinkState::loses(PortId port, const Packet& packet, std::int64_t wire, Time arrival) {
  fabric::Link& link = links_[port];
  const bool cut = is_cut(port, packet, arrival);
  if (!cut && (link.loss <= 0 || packet.kind == PacketKind::link_control ||
               link.loss_random.uniform() >= link.loss)) {
    return false;
  }
  ++state_.tallies[port].lost;
  if (cut) {
    link.lost_until = state_.ports[port].busy_until;
    link.lost_from = link.lost_until - serialisation(port, wire);
    link.lost_time += link.lost_until - link.lost_from;
  }
  return true;
}

void set_rate(FabricState& state, PortId port, BitRate rate) {
  const std::int64_t ps = 8 * kSecond / rate;
  fabric::Link& link = state.links[port];
  if (link.rate != 0) {
    link.busy_before = busy_time(state, port);
    link.wire_bytes_before = state.ports[port].wire_bytes;
  }
  link.rate = rate;
  state.ports[port].ps_per_byte = state.resolution == 0 && 8 * kSecond % rate == 0 && ps <= UINT16_MAX
                                      ? static_cast<std::uint16_t>(ps)
                                      : std::uint16_t{0};
}

void set_passage(FabricState& state, PortId port) {
  ++state.passage_changes;
  const PortSpec& spec = state.graph.port(port);
  fabric::Port& p = state.ports[port];
  fabric::Link& link = state.links[port];
  p.delay = link.delay;
  link.cut_through = spec.link.cut_through;
  link.header = link.header_bytes = 0;
  if (is_switch(state.graph, spec.peer_node)) {
    const SwitchParameters& there = state.of_switch(spec.peer_node);
    p.delay += there.latency;
    if (there.forwarding == Switching::cut_through && link.rate >= fastest_port(state, spec.peer_node)) {
      link.cut_through = true;
      link.header_bytes = there.header;
      link.header = transmission_time(there.header, link.rate);
    }
  }
  p.flags &= ~(fabric::kCutThrough | fabric::kReadsHeader);
  if (link.cut_through) p.flags |= fabric::kCutThrough;
  if (link.header != 0) p.flags |= fabric::kReadsHeader;
}

// With rounded times (transmission_resolution) a link may carry slightly more than its rate.
Time busy_time(const FabricState& state, PortId port) {
  const fabric::Port& p = state.ports[port];
  const fabric::Link& link = state.links[port];
  return std::min(link.busy_before + time_at_rate(p.wire_bytes - link.wire_bytes_before, link.rate),
                  p.busy_until);
}

}  // namespace netsim
