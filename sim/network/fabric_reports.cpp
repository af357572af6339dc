// Reports of the fabric: counters, notes, waiting packets.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "sim/network/aggregation/adding_switches.h"
#include "sim/network/fabric.h"
#include "sim/network/link_state.h"

namespace netsim {

PortCounters Fabric::counters(PortId port) const {
  const fabric::Port& p = state_.ports[port];
  const fabric::Tallies& tallies = state_.tallies[port];
  const fabric::Pauses& pauses = state_.pauses_of(port);
  PortCounters c;
  const fabric::Link& link = state_.links[port];
  c.wire_bytes = p.wire_bytes;
  c.data_packets = p.data_packets;
  c.ecn_marks = tallies.marks;
  c.drops = tallies.drops;
  c.no_route = tallies.no_route;
  c.cnps = tallies.cnps;
  c.lost = tallies.lost;
  c.link_repeats = tallies.link_repeats;
  c.last_end = p.busy_until == link.lost_until ? link.lost_from : p.busy_until;
  c.busy = std::max<Time>(busy_time(state_, port) - link.lost_time, 0);
  Time held = pauses.time;
  for (std::uint32_t i = 0; i < state_.priorities; ++i) {
    c.max_queue = std::max(c.max_queue, state_.queue(port, i).max_bytes);
    if ((p.paused_by_peer & ~pauses.awaiting_peer_state) >> i & 1)
      held += engine_.now() - state_.paused_since[state_.queue_index(port, i)];
  }
  const bool credits = (p.flags & fabric::kCredits) != 0;
  (credits ? c.credit_stalls : c.pauses) = pauses.count;
  (credits ? c.credit_stalled : c.paused) = held;
  for (std::uint32_t i = 0; i < state_.data_queues; ++i) {
    const fabric::Ingress& in = state_.ingress[state_.class_index(port, kDataPriority + i)];
    c.headroom += in.headroom;
    c.max_headroom_used = std::max<Bytes>(c.max_headroom_used, in.max_headroom_used);
  }
  return c;
}

std::uint64_t Fabric::events_fingerprint() const {
  std::uint64_t sum = 0;
  for (PortId id = 0; id < state_.ports.size(); ++id) sum += hash_combine(id, state_.ports[id].digest);
  return sum;
}

std::uint32_t Fabric::pfc_paused(PortId port) const {
  const fabric::Port& p = state_.ports[port];
  if ((p.flags & fabric::kCredits) != 0) return 0;
  return static_cast<std::uint32_t>(
      std::popcount(p.paused_by_peer & ~unsigned{state_.pauses_of(port).awaiting_peer_state}));
}

std::string Fabric::lacks_format(NumberFormat format) const {
  const NodeId node = switch_without_format(state_, adds_up_, format);
  return node == kNoId ? "" : state_.graph.node(node).name;
}

std::vector<std::string> Fabric::notes() const {
  std::vector<std::string> notes = circles_;
  std::map<Bytes, Bytes> needed;  // largest headroom needed, by the headroom given
  for (PortId id = 0; id < state_.ports.size(); ++id) {
    if ((state_.ports[id].flags & fabric::kBuffered) == 0 || state_.rules_at(id).lossless == 0) continue;
    const Bytes given = state_.of_switch(graph_.port(id).node).headroom;
    if (given != 0) needed[given] = std::max(needed[given], computed_headroom(id ^ 1U));
  }
  for (const auto& [given, most] : needed) {
    if (given >= most) continue;
    notes.push_back(fmt::format(
        "PFC headroom of {} B is below the {} B that losslessness needs: drops are possible", given, most));
  }
  return notes;
}

Time Fabric::down_since(PortId port) const {
  Time since = 0;
  for (const LinkChange& change : faults_.schedule().changes) {
    const bool goes_down = change.kind == LinkChange::Kind::down && change.at <= engine_.now();
    if (goes_down && (change.port == port || change.port == (port ^ 1U))) since = std::max(since, change.at);
  }
  return since;
}

std::vector<std::string> Fabric::waiting(std::size_t limit) const {
  std::vector<std::string> lines;
  const std::vector<PortId>& cycle = deadlock_.cycle();
  for (std::size_t i = 0; i < cycle.size() && lines.size() < limit; ++i) {
    const PortId next = cycle[(i + 1) % cycle.size()];
    lines.push_back(fmt::format("deadlock: port {} is held back by {} until port {} moves",
                                graph_.port_name(cycle[i]), graph_.node(graph_.port(cycle[i]).peer_node).name,
                                graph_.port_name(next)));
  }
  for (PortId id = 0; id < state_.ports.size() && lines.size() < limit; ++id) {
    const Bytes bytes = queued(id);
    if (bytes == 0) continue;
    const char* down = state_.pauses_of(id).circuit_down ? ", for a circuit that is down" : "";
    lines.push_back(
        fmt::format("port {}: {} B wait{}{}", graph_.port_name(id), bytes, down,
                    state_.ports[id].paused_by_peer != 0
                        ? fmt::format(", held back by {}", graph_.node(graph_.port(id).peer_node).name)
                        : ""));
  }
  return lines;
}

}  // namespace netsim
