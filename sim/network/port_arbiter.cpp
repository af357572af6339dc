#include "sim/network/port_arbiter.h"

#include <fmt/format.h>

#include <cstddef>

#include "sim/core/config.h"
#include "sim/core/errors.h"

namespace netsim {

PortArbiter::PortArbiter(EventLoop& loop, FabricState& state, BackPressure& back_pressure,
                         RemotePacketEvents& remote_event)
    : loop_(loop),
      state_(state),
      port_count_(state.ports.size()),
      ports_(state.ports.data()),
      queues_(state.queues.data()),
      ports_base_(ports_),
      data_queues_base_(queues_ + port_count_ * kDataPriority),
      forwarding_(state),
      aggregations_(state.aggregations),
      buffers_(state),
      links_(state),
      back_pressure_(back_pressure),
      remote_event_(remote_event) {
  if (state.telemetry) packets_.enable_telemetry();
  if (state.routing.detours()) packets_.enable_detours();
  if (state.tags) packets_.enable_tags();
  prefetch();
}

void PortArbiter::prefetch() {
  for (const EventKind kind : {EventKind::arrival, EventKind::departure}) {
    loop_.set_prefetch(kind, &ports_base_, sizeof(Port), packets_.base(), sizeof(Packet));
    loop_.prefetch_also(kind, &data_queues_base_, sizeof(Queue), port_count_ / 2 * sizeof(Queue));
  }
  for (const EventKind kind : {EventKind::arrival, EventKind::receive})
    loop_.prefetch_behind(kind, offsetof(Packet, path), forwarding_.base());
}

// Handles what only some ports have: faults, credits, telemetry. Returns false if the packet was lost on the
// link.
bool PortArbiter::transmit_examined(PortId port, std::uint32_t packet, std::int64_t wire, Time arrival) {
  Port& p = ports_[port];
  Packet& k = packets_[packet];
  if ((p.flags & fabric::kFaulty) != 0 && links_.loses(port, k, wire, arrival)) {
    if (k.kind == PacketKind::link_control) {
      back_pressure_.frame_lost(port, k);
    } else if (k.ingress_queue == kNoIngressQueue && !k.repaired) {
      repeat_on_link(port, packet, arrival);
      return false;
    }
    if ((p.flags & fabric::kTellsDepartures) != 0 && k.kind == PacketKind::data)
      source_->departed(port, k.bytes);
    packets_.release(packet);
    return false;
  }
  if (k.kind == PacketKind::link_control) return true;
  if ((p.flags & fabric::kCredits) != 0) back_pressure_.use_credit(port, k.priority, k.bytes);
  if ((p.flags & fabric::kTelemetry) != 0 && k.kind == PacketKind::data) {
    Telemetry& t = packets_.telemetry(packet);
    if (t.hops < kTelemetryHops)
      t.hop[t.hops++] = {loop_.now(), p.wire_bytes - wire, state_.queued(port), links_.rate(port)};
  }
  return true;
}

void PortArbiter::trace_queued(PortId port, std::uint32_t packet) {
  packets_.trace(packet).queued(held_time(port, packets_[packet].priority));
}

void PortArbiter::trace_sent(PortId port, std::uint32_t packet, Time arrival) {
  packets_.trace(packet).sent(port, loop_.now(), arrival,
                              [&] { return held_time(port, packets_[packet].priority); });
}

// Transmits a packet that need not wait, at a port that returns credits or has a policy of its own. The
// credit comes after it, so that a credit frame that leaves by the same port follows the packet.
void PortArbiter::transmit_at_once(PortId port, std::uint32_t packet) {
  const std::uint32_t flags = ports_[port].flags;
  if ((flags & fabric::kOwnMarker) != 0) mark_leaving(port, packet, 0);
  const Packet k = packets_[packet];
  if (is_scheduled(port, k.priority))
    state_.scheduled[port]->scheduler->sent_at_once(view(packet), loop_.now());
  transmit(port, packet);
  if ((flags & fabric::kReturnsCredits) != 0)
    back_pressure_.return_credit(k.ingress, k.ingress_queue, k.bytes);
}

// Handles a packet that has left its queue and is about to be transmitted, at such a port.
void PortArbiter::leave_queue(PortId port, std::uint32_t packet) {
  const std::uint32_t flags = ports_[port].flags;
  if ((flags & fabric::kOwnMarker) != 0)
    mark_leaving(port, packet, loop_.now() - packets_.tag(packet).queued_at);
  const Packet& k = packets_[packet];
  if ((flags & fabric::kReturnsCredits) != 0)
    back_pressure_.return_credit(k.ingress, k.ingress_queue, k.bytes);
}

void PortArbiter::on_route(const Event& event) {
  if ((event.target & (kGivenHop | kAggregationTarget)) == kAggregationTarget) [[unlikely]]
    return on_aggregation(event);
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Packet& k = packets_[packet];
  k.ingress_queue = k.priority;
  const Hop hop = (event.target & kGivenHop) != 0 ? given_hop(event.target)
                                                  : forwarding_.choose(event.target, packet, packets_, *this);
  if (hop.port == kNoId) {
    ++state_.tallies[k.ingress ^ 1U].no_route;
    discard(packet);
    return;
  }
  k.priority = state_.in_channel[hop.channel][k.priority];
  update_digest(hop.port, event);
  enqueue(hop.port, packet);
}

// Handles a packet of a multicast or reduction at a switch.
void PortArbiter::on_aggregation(const Event& event) {
  using Arrival = SwitchSums::Arrival;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  const SwitchAggregations::Entry entry = aggregations_.entry(event.target & (kAggregationTarget - 1));
  Packet& k = packets_[packet];
  k.ingress_queue = k.priority;
  const PortId from = k.ingress;
  update_digest(from ^ 1U, event);
  const SwitchAggregations::At& at = aggregations_.at(entry);
  const std::uint32_t arrived = k.bytes;
  if (at.table != kNoIndex) {
    if (at.branches.empty()) return add_best_effort(at, packet);
    aggregations_.free_aggregator(at, k.psn);
  }
  Arrival arrival = Arrival::completes;
  Time latency = at.latency;
  if (at.members != 0) {
    latency += aggregations_.occupy(at, k.bytes, loop_.now());
    Addend addend{k.psn, k.message, k.bytes};
    if (at.store != nullptr) at.store->arriving = {addend, 0, entry.aggregation, k.path};
    arrival = aggregations_.add_packet(entry, addend);
    if (arrival == Arrival::waits || arrival == Arrival::absorbed) return discard(packet);
    if (at.store != nullptr) k.path = at.store->leaving.path;
    k.psn = addend.psn;
    k.message = addend.value;
    k.bytes = addend.bytes;
  }
  // The sum that leaves shared tables may belong to another tree.
  const SwitchAggregations::At& of_sum =
      at.store != nullptr ? aggregations_.at({at.store->leaving.group, 0}) : at;
  back_pressure_.return_credit(from, k.ingress_queue, arrived);
  if (!of_sum.branches.empty()) {
    if (arrival == Arrival::repeats) return leave(packet, at.branches[entry.member], latency);
    return copy(of_sum, packet, latency);
  }
  // Read only now: return_credit() may have made a frame, which moves packets.
  const Packet& sum = packets_[packet];
  leave(packet, {port_of_step(forwarding_.next_step(sum)), sum.path + 1}, latency);
}

// Handles a worker's packet of a best-effort group. What goes on keeps the packet's buffer space, as any
// packet that is forwarded.
void PortArbiter::add_best_effort(const SwitchAggregations::At& at, std::uint32_t packet) {
  using Outcome = AggregatorTable::Outcome;
  Packet& k = packets_[packet];
  Contribution data{packets_.workers(packet), k.message, k.marked, k.collided};
  const Time latency = at.latency + aggregations_.occupy(at, k.bytes, loop_.now());
  const Outcome outcome = aggregations_.add_best_effort(at, k.psn, k.bytes, k.again, data);
  if (outcome == Outcome::joins) return discard(packet);
  packets_.workers(packet) = data.workers;
  k.message = data.value;
  k.marked = data.marked;
  k.collided = data.collided;
  const PortId port = port_of_step(forwarding_.next_step(k));
  ++k.path;
  if (latency == 0) return enqueue(port, packet);
  loop_.schedule(loop_.now() + latency, ports_[port].origin, EventKind::arrival, port, packet);
}

void PortArbiter::copy(const SwitchAggregations::At& at, std::uint32_t packet, Time latency) {
  const std::vector<SwitchAggregations::Branch>& branches = at.branches;
  for (std::size_t i = 1; i < branches.size(); ++i) {
    const std::uint32_t other = packets_.allocate();
    packets_[other] = packets_[packet];
    if (packets_[other].traced) packets_.trace(other) = packets_.trace(packet);
    if (state_.tags) packets_.tag(other) = packets_.tag(packet);
    leave(other, branches[i], latency);
  }
  leave(packet, branches[0], latency);
}

// Sends a copy or sum to a port. It takes no buffer space: the space of its packets has been released.
void PortArbiter::leave(std::uint32_t packet, const SwitchAggregations::Branch& branch, Time latency) {
  packets_[packet].path = branch.path;
  packets_[packet].ingress = branch.port;
  packets_[packet].ingress_queue = kNoIngressQueue;
  if (branch.bare != 0) packets_[packet].bytes = branch.bare;
  if (latency == 0) return enqueue(branch.port, packet);
  loop_.schedule(loop_.now() + latency, ports_[branch.port].origin, EventKind::arrival, branch.port, packet);
}

// Sends a packet of a tree again that the link has lost by chance. The far end misses it when it would have
// arrived, and its NACK takes the link's delay back, as on SHARP's reliable connections between neighbours.
void PortArbiter::repeat_on_link(PortId port, std::uint32_t packet, Time arrival) {
  if (!packets_[packet].kept_by_links || links_.is_cut(port, packets_[packet], arrival))
    fail_aggregation(port);
  if (packets_[packet].traced) trace_queued(port, packet);
  ++state_.tallies[port].link_repeats;
  loop_.schedule(arrival + links_.delay(port), ports_[port].origin, EventKind::arrival, port, packet);
}

// Ends the run with an error: a lost sum or copy is lost for all members, and no sender would send it again.
void PortArbiter::fail_aggregation(PortId port) {
  throw InputError(
      fmt::format("link {} has lost a packet that switches add up or copy, at {}: their collective cannot "
                  "continue without it, and nothing sends it again (network.faults)",
                  state_.graph.port_name(port), format_time(loop_.now())));
}

// Releases a packet that leaves the switch without having waited in a queue.
void PortArbiter::discard(std::uint32_t packet) {
  const Packet& k = packets_[packet];
  back_pressure_.return_credit(k.ingress, k.ingress_queue, k.bytes);
  packets_.release(packet);
}

void PortArbiter::hold(PortId port, std::uint32_t priority) {
  Port& p = ports_[port];
  if ((p.flags & fabric::kBuffered) != 0 && !is_held(port, priority)) ++held_back_;
  const std::size_t index = queue_index(port, priority);
  if (is_held(port, priority)) state_.held_time[index] += loop_.now() - state_.paused_since[index];
  p.paused_by_peer = static_cast<std::uint8_t>(p.paused_by_peer | 1U << priority);
  p.paused = static_cast<std::uint8_t>(p.paused | 1U << priority);
  state_.paused_since[index] = loop_.now();
  if (may_escape(port, priority)) escape_all(port, priority);
}

void PortArbiter::release(PortId port, std::uint32_t priority) {
  Port& p = ports_[port];
  const std::size_t index = queue_index(port, priority);
  state_.held_time[index] += loop_.now() - state_.paused_since[index];
  p.paused_by_peer = static_cast<std::uint8_t>(p.paused_by_peer & ~(1U << priority));
  if ((p.flags & fabric::kBuffered) != 0) --held_back_;
  if (state_.pauses_of(port).circuit_down) return;
  p.paused = static_cast<std::uint8_t>(p.paused & ~(1U << priority));
  if (p.waiting != 0 || (p.flags & fabric::kHasSource) != 0) wake(port, 0);
}

// ---- Escape (Duato, IEEE TPDS 1993). A packet waits in an adaptive channel that is held back. It moves to
// its hop in the channels of Routes::add_hops() as soon as the queue there is empty. So packets wait without
// limit only in those channels, which contain no cycles.

// Moves packets from the front of the held-back queue while their escape queues are empty.
void PortArbiter::escape_all(PortId port, std::uint32_t priority) {
  while (queue(port, priority).head != kNoIndex) {
    const Hop hop = forwarding_.escape_hop(packets_[queue(port, priority).head]);
    if (hop.port == kNoId) return;
    const std::uint32_t into = state_.in_channel[hop.channel][priority];
    if (queue(hop.port, into).head != kNoIndex) return;
    escape(port, priority, hop.port, into);
    wake(hop.port, 0);
  }
}

// Called when the queue `priority` of `port` becomes empty. Moves one packet of this switch that waits for
// that queue into it.
void PortArbiter::let_escape(PortId port, std::uint32_t priority) {
  if (priority < kDataPriority || may_escape(port, priority)) return;
  const std::uint32_t adaptive = state_.in_channel[state_.adaptive_channel][priority];
  for (const PortId other : state_.graph.ports_of(state_.graph.port(port).node)) {
    const std::uint32_t head = queue(other, adaptive).head;
    if (head == kNoIndex || !is_stopped(other, adaptive)) continue;
    const Hop hop = forwarding_.escape_hop(packets_[head]);
    if (hop.port != port || state_.in_channel[hop.channel][priority] != priority) continue;
    escape(other, adaptive, port, priority);
    escape_all(other, adaptive);
    return;
  }
}

// Moves the first packet of a queue to the empty queue `into` of `by`.
void PortArbiter::escape(PortId port, std::uint32_t priority, PortId by, std::uint32_t into) {
  join(by, into, take_first(port, priority));
}

// ---- Moves between queues of a switch. The packet keeps its buffer space.

std::uint32_t PortArbiter::take_first(PortId port, std::uint32_t priority) {
  Queue& from = queue(port, priority);
  const std::uint32_t packet = from.head;
  from.head = packets_[packet].next;
  count_taken(port, priority, packet);
  return packet;
}

// Removes a packet from the counts of its queue, from which it has been taken.
void PortArbiter::count_taken(PortId port, std::uint32_t priority, std::uint32_t packet) {
  Queue& from = queue(port, priority);
  const Packet& k = packets_[packet];
  if (k.traced) trace_sent(port, packet, loop_.now());
  from.bytes -= k.bytes;
  if (--from.packets != 0) return;
  from.head = from.tail = kNoIndex;
  ports_[port].waiting = static_cast<std::uint8_t>(ports_[port].waiting & ~(1U << priority));
}

void PortArbiter::join(PortId port, std::uint32_t priority, std::uint32_t packet) {
  Queue& to = queue(port, priority);
  Packet& k = packets_[packet];
  k.priority = static_cast<std::uint8_t>(priority);
  if (k.traced) trace_queued(port, packet);
  if (is_scheduled(port, priority)) {
    push_own(port, packet);
  } else {
    k.next = kNoIndex;
    (to.head == kNoIndex ? to.head : packets_[to.tail].next) = packet;
    to.tail = packet;
  }
  ++to.packets;
  to.bytes += k.bytes;
  ports_[port].waiting = static_cast<std::uint8_t>(ports_[port].waiting | 1U << priority);
}

// ---- Policies of a port's own

PacketView PortArbiter::view(std::uint32_t packet) const {
  const std::uint32_t priority = packets_[packet].priority;
  return view_of(packets_, packet, priority < kDataPriority ? 0 : state_.class_of(priority));
}

// Handles a packet that must wait at a port with a policy of its own. Returns whether it has joined a queue
// of the port's scheduler; otherwise the caller queues it.
bool PortArbiter::join_own(PortId port, std::uint32_t packet) {
  Packet& k = packets_[packet];
  Queue& q = queue(port, k.priority);
  if ((ports_[port].flags & fabric::kOwnMarker) != 0 && k.kind == PacketKind::data &&
      state_.marking[port].own->marks_joining(view(packet), {q.bytes, q.packets}, loop_.now()))
    buffers_.set_mark(port, k);
  packets_.tag(packet).queued_at = loop_.now();
  if (!is_scheduled(port, k.priority)) return false;
  if (k.traced) trace_queued(port, packet);
  k.step = forwarding_.next_step(k);
  push_own(port, packet);
  ports_[port].waiting = static_cast<std::uint8_t>(ports_[port].waiting | 1U << k.priority);
  count_queued(port, q, packet);
  return true;
}

// Puts a packet into the queue that the port's scheduler chooses within the packet's data queue.
void PortArbiter::push_own(PortId port, std::uint32_t packet) {
  fabric::ScheduledPort& own = *state_.scheduled[port];
  const std::uint32_t priority = packets_[packet].priority;
  own.queues.set_packets(packets_);
  const std::uint32_t chosen = own.scheduler->queue_of(view(packet), own.queues, loop_.now());
  NETSIM_CHECK(chosen < own.queues.queues_per_class(), "a queue discipline chose a queue that there is not");
  own.queues.push((priority - kDataPriority) * own.queues.queues_per_class() + chosen, packet);
  queue(port, priority).head = packet;
}

// Takes the packet that the port's scheduler chooses out of its queue, and makes it the only one that
// dequeue() sees. Returns its priority.
std::uint32_t PortArbiter::select_own(PortId port, std::uint32_t ready) {
  fabric::ScheduledPort& own = *state_.scheduled[port];
  own.queues.set_packets(packets_);
  own.queues.set_ready(ready >> kDataPriority);
  const std::uint32_t chosen = own.scheduler->select(own.queues, loop_.now());
  NETSIM_CHECK(chosen < own.queues.size() && own.queues.may_send(chosen),
               "a queue discipline chose a queue that may not send");
  const std::uint32_t packet = own.queues.pop(chosen);
  const std::uint32_t priority = packets_[packet].priority;
  Queue& q = queue(port, priority);
  q.head = packet;
  packets_[packet].next = q.packets > 1 ? packet : kNoIndex;  // so that the data queue counts as occupied
  return priority;
}

void PortArbiter::mark_leaving(PortId port, std::uint32_t packet, Time waited) {
  Packet& k = packets_[packet];
  if (k.kind != PacketKind::data) return;
  const Queue& q = queue(port, k.priority);
  if (state_.marking[port].own->marks_leaving(view(packet), {q.bytes, q.packets}, waited, loop_.now()))
    buffers_.set_mark(port, k);
}

// Does reroute() where a scheduler orders packets. Those that stay go back to the queue that they came from.
void PortArbiter::reroute_scheduled(PortId port) {
  PortQueues& queues = state_.scheduled[port]->queues;
  queues.set_packets(packets_);
  for (std::uint32_t at = 0; at < queues.size(); ++at) {
    for (std::uint32_t left = queues.packets(at); left > 0; --left) {
      const std::uint32_t packet = queues.pop(at);
      const std::uint32_t priority = packets_[packet].priority;
      count_taken(port, priority, packet);
      if (reroute_packet(port, packet)) continue;
      if (packets_[packet].traced) trace_queued(port, packet);
      queues.push(at, packet);
      Queue& q = queue(port, priority);
      q.head = packet;
      ++q.packets;
      q.bytes += packets_[packet].bytes;
      ports_[port].waiting = static_cast<std::uint8_t>(ports_[port].waiting | 1U << priority);
    }
  }
}

// ---- Circuits

void PortArbiter::take_circuit_down(PortId port) {
  state_.pauses_of(port).circuit_down = true;
  ports_[port].paused = 0xff;
}

void PortArbiter::bring_circuit_up(PortId port) {
  state_.pauses_of(port).circuit_down = false;
  Port& p = ports_[port];
  p.paused = p.paused_by_peer;
  if ((p.waiting & ~p.paused) != 0) wake(port, 0);
}

void PortArbiter::reroute(PortId port) {
  if ((ports_[port].flags & fabric::kOwnScheduler) != 0) return reroute_scheduled(port);
  for (std::uint32_t priority = kDataPriority; priority < state_.priorities; ++priority) {
    for (std::uint32_t left = queue(port, priority).packets; left > 0; --left) {
      const std::uint32_t packet = take_first(port, priority);
      if (!reroute_packet(port, packet)) join(port, priority, packet);
    }
  }
}

// Moves a packet to another port. Returns false if it follows a path or has no other hop.
bool PortArbiter::reroute_packet(PortId port, std::uint32_t packet) {
  Packet& k = packets_[packet];
  if (k.step >> kStepShift != static_cast<std::uint32_t>(StepKind::route) ||
      (k.step & (kGivenHop | kAggregationTarget)) != 0)
    return false;
  const std::uint8_t queued_in = k.priority;
  k.priority = k.ingress_queue;
  const Hop hop = forwarding_.choose(k.step & ((1U << kStepShift) - 1), packet, packets_, *this);
  if (hop.port == kNoId || hop.port == port) {
    k.priority = queued_in;
    return false;
  }
  k.step = forwarding_.next_step(k);
  join(hop.port, state_.in_channel[hop.channel][k.priority], packet);
  const Port& p = ports_[hop.port];
  if ((p.waiting & ~p.paused) != 0) wake(hop.port, 0);
  return true;
}

}  // namespace netsim
