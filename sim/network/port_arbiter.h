// PortArbiter: the ports of one logical process. It keeps their queues, chooses which packet goes next and
// when, and transmits it. This file and switch_buffers.h contain a packet's whole way through a switch.
//
// The packet arrives (on_arrival). It is transmitted at once or joins a queue (enqueue). When its turn comes
// (on_departure), it is transmitted to the next port (transmit).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>

#include "sim/core/event_loop.h"
#include "sim/network/aggregation/switch_aggregations.h"
#include "sim/network/back_pressure.h"
#include "sim/network/fabric_state.h"
#include "sim/network/link_state.h"
#include "sim/network/packet.h"
#include "sim/network/packet_forwarding.h"
#include "sim/network/remote_packet_events.h"
#include "sim/network/switch_buffers.h"

namespace netsim {

// PacketSource: creates packets for a port on demand (a NIC).
class PacketSource {
 public:
  virtual ~PacketSource() = default;
  // Called when the port could transmit and its queues are empty. The source must transmit() one packet, then
  // wake() the port if there are more.
  virtual void port_free(PortId port) = 0;
  // Called when a data packet leaves `port`, if set_departure_hook() was called for the port.
  virtual void departed(PortId port, Bytes bytes) = 0;
};

class PortArbiter {
 public:
  // Owns the packets of its logical process. `back_pressure` and `remote_event` may be constructed after it.
  PortArbiter(EventLoop& loop, FabricState& state, BackPressure& back_pressure,
              RemotePacketEvents& remote_event);
  PortArbiter(const PortArbiter&) = delete;
  PortArbiter& operator=(const PortArbiter&) = delete;

  PacketArena& packets() { return packets_; }
  const PacketArena& packets() const { return packets_; }
  SwitchBuffers& buffers() { return buffers_; }
  SwitchAggregations& aggregations() { return aggregations_; }
  Origin& origin(PortId port) { return ports_[port].origin; }

  void set_source(PacketSource* source) { source_ = source; }
  // Sets whether the source has packets for this port. Only then it is asked for one, whenever the port has
  // nothing else to send.
  void set_source_ready(PortId port, bool ready) {
    Port& p = ports_[port];
    p.flags = ready ? p.flags | fabric::kHasSource : p.flags & ~fabric::kHasSource;
  }
  void set_departure_hook(PortId port) { ports_[port].flags |= fabric::kTellsDepartures; }

  // Takes over a packet that is at `port`'s node. Transmits it at once if the port may, else queues or drops
  // it. packet.path must be the index of the step after `port`.
  void enqueue(PortId port, std::uint32_t packet);
  // Transmits a packet made for the free port `port`. Only PacketSource::port_free may call it.
  void transmit(PortId port, std::uint32_t packet) {
    transmit(port, packet, forwarding_.next_step(packets_[packet]));
  }
  // Schedules the port's next departure for as soon as it is free, unless one is pending. `next` is what it
  // will probably send, to be prefetched: a packet, or in the high half the queue pair that will make one.
  void wake(PortId port, std::uint64_t next) { wake(port, next, ports_[port].origin); }
  // Wakes the port likewise, but the event takes its key from `by`, the origin of another port. Ports that
  // one port wakes for the same time are then served in the order of these calls.
  void wake(PortId port, std::uint64_t next, Origin& by) {
    Port& p = ports_[port];
    if (p.wake) return;
    p.wake = true;
    loop_.schedule(std::max(loop_.now(), p.busy_until), by, EventKind::departure, port, next);
  }

  // Blocks a priority of the port from now on. If it was blocked already, the time up to now is added to
  // held_time, and a new interval begins.
  void hold(PortId port, std::uint32_t priority);
  // Ends the hold of a priority, which must be held.
  void release(PortId port, std::uint32_t priority);
  bool is_held(PortId port, std::uint32_t priority) const {
    return (ports_[port].paused_by_peer >> priority & 1) != 0;
  }
  // Returns whether the priority must not be sent, because it is held or because the port's circuit is down.
  bool is_stopped(PortId port, std::uint32_t priority) const {
    return (ports_[port].paused >> priority & 1) != 0;
  }
  // Called between events when the port's circuit goes down or comes up. While it is down nothing leaves, not
  // even link control.
  void take_circuit_down(PortId port);
  void bring_circuit_up(PortId port);
  // Called between events. Moves waiting packets that switches route to other ports, if they have other hops.
  void reroute(PortId port);
  // Returns the total time for which the priority has been held back.
  Time held_time(PortId port, std::uint32_t priority) const {
    const std::size_t index = queue_index(port, priority);
    return state_.held_time[index] + (is_held(port, priority) ? loop_.now() - state_.paused_since[index] : 0);
  }
  // Returns the number of switch queues that are held back now.
  std::uint64_t held_back() const { return held_back_; }

  // Returns the values that adaptive routing compares, in this order. They are: whether the priority is
  // stopped, the bytes that wait, and the time until the port is free.
  std::tuple<bool, Bytes, Time> load(PortId port, std::uint32_t priority) const {
    return {is_stopped(port, priority), state_.queued(port),
            std::max<Time>(ports_[port].busy_until - loop_.now(), 0)};
  }
  Time now() const { return loop_.now(); }
  // Adds the event to the port's digest.
  void update_digest(PortId port, const Event& event) {
    ports_[port].digest = event_digest(ports_[port].digest, event);
  }

  void on_arrival(const Event& event) {
    update_digest(event.target, event);
    enqueue(event.target, static_cast<std::uint32_t>(event.argument));
  }
  void on_departure(const Event& event);
  // Handles a packet at a switch that chooses its next hop, or copies or sums it.
  void on_route(const Event& event);

 private:
  using Port = fabric::Port;
  using Queue = fabric::Queue;

  std::size_t queue_index(PortId port, std::uint32_t priority) const {
    return static_cast<std::size_t>(priority) * port_count_ + fabric::slot(port, port_count_);
  }
  Queue& queue(PortId port, std::uint32_t priority) { return queues_[queue_index(port, priority)]; }

  void prefetch();
  void transmit(PortId port, std::uint32_t packet, std::uint32_t step);
  void trace_queued(PortId port, std::uint32_t packet);
  void trace_sent(PortId port, std::uint32_t packet, Time arrival);
  bool transmit_examined(PortId port, std::uint32_t packet, std::int64_t wire, Time arrival);
  void transmit_at_once(PortId port, std::uint32_t packet);
  void leave_queue(PortId port, std::uint32_t packet);
  void count_queued(PortId port, Queue& q, std::uint32_t packet);
  std::uint32_t next_priority(PortId port, std::uint32_t ready);
  std::uint32_t dequeue(PortId port, std::uint32_t priority);
  void on_aggregation(const Event& event);
  // These serve ports with kOwnScheduler or kOwnMarker.
  bool is_scheduled(PortId port, std::uint32_t priority) const {
    return (ports_[port].flags & fabric::kOwnScheduler) != 0 && priority >= kDataPriority;
  }
  PacketView view(std::uint32_t packet) const;
  bool join_own(PortId port, std::uint32_t packet);
  void push_own(PortId port, std::uint32_t packet);
  std::uint32_t select_own(PortId port, std::uint32_t ready);
  void mark_leaving(PortId port, std::uint32_t packet, Time waited);
  void reroute_scheduled(PortId port);
  void add_best_effort(const SwitchAggregations::At& at, std::uint32_t packet);
  void copy(const SwitchAggregations::At& at, std::uint32_t packet, Time latency);
  void leave(std::uint32_t packet, const SwitchAggregations::Branch& branch, Time latency);
  void repeat_on_link(PortId port, std::uint32_t packet, Time arrival);
  [[noreturn]] void fail_aggregation(PortId port);
  bool find_room(PortId port, std::uint32_t packet, const Queue& queue);
  void discard(std::uint32_t packet);
  bool may_escape(PortId port, std::uint32_t priority) const {
    return (ports_[port].flags & fabric::kEscapes) != 0 && priority >= kDataPriority &&
           state_.channel_of(priority) == state_.adaptive_channel;
  }
  void escape_all(PortId port, std::uint32_t priority);
  void let_escape(PortId port, std::uint32_t priority);
  void escape(PortId port, std::uint32_t priority, PortId by, std::uint32_t into);
  std::uint32_t take_first(PortId port, std::uint32_t priority);
  void count_taken(PortId port, std::uint32_t priority, std::uint32_t packet);
  void join(PortId port, std::uint32_t priority, std::uint32_t packet);
  bool reroute_packet(PortId port, std::uint32_t packet);

  EventLoop& loop_;
  FabricState& state_;
  PacketSource* source_ = nullptr;
  // Copies of values in the state that every packet uses.
  const std::size_t port_count_;
  Port* ports_;
  Queue* queues_;
  const void* ports_base_;
  const void* data_queues_base_;  // queues of class 0
  PacketArena packets_;
  PacketForwarding forwarding_;
  SwitchAggregations& aggregations_;
  SwitchBuffers buffers_;
  LinkState links_;
  BackPressure& back_pressure_;
  RemotePacketEvents& remote_event_;
  std::uint64_t held_back_ = 0;
};

inline void PortArbiter::enqueue(PortId port, std::uint32_t packet) {
  Port& p = ports_[port];
  const std::uint8_t priority = packets_[packet].priority;
  if (!p.wake && loop_.now() >= p.busy_until && ((p.waiting & ~p.paused) | (p.paused >> priority & 1)) == 0)
      [[likely]] {
    if ((p.flags & (fabric::kReturnsCredits | fabric::kOwnScheduler | fabric::kOwnMarker)) != 0)
        [[unlikely]] {
      transmit_at_once(port, packet);
    } else {
      transmit(port, packet);
    }
    if ((p.flags & fabric::kHasSource) != 0) wake(port, 0);
    return;
  }
  Queue& q = queue(port, priority);
  if ((p.flags & fabric::kBuffered) != 0 && !find_room(port, packet, q)) [[unlikely]]
    return;
  Packet& k = packets_[packet];  // read only now: find_room() may have added a PFC frame, which moves packets
  if ((p.flags & (fabric::kMarksAtEnqueue | fabric::kOwnScheduler | fabric::kOwnMarker)) != 0) [[unlikely]] {
    if ((p.flags & fabric::kMarksAtEnqueue) != 0 && q.bytes > q.mark_above && k.kind == PacketKind::data)
      buffers_.mark(port, k, q.bytes);
    if ((p.flags & (fabric::kOwnScheduler | fabric::kOwnMarker)) != 0 && join_own(port, packet)) return;
  }
  if (k.traced) [[unlikely]]
    trace_queued(port, packet);
  k.next = kNoIndex;
  // The step is loaded here, where no computation waits for it. At departure the next event would wait.
  k.step = forwarding_.next_step(k);
  if (q.head == kNoIndex) {
    q.head = q.tail = packet;
    p.waiting = static_cast<std::uint8_t>(p.waiting | 1U << priority);
  } else {
    packets_[q.tail].next = packet;
    q.tail = packet;
  }
  count_queued(port, q, packet);
}

// Adds a packet to the counts of its queue, which it has joined, and wakes the port.
inline void PortArbiter::count_queued(PortId port, Queue& q, std::uint32_t packet) {
  const Port& p = ports_[port];
  ++q.packets;
  q.bytes += packets_[packet].bytes;
  Bytes waiting = q.bytes;
  if ((p.waiting & (p.waiting - 1)) != 0) [[unlikely]]
    waiting = state_.queued(port);  // the port has packets of several priorities
  if (waiting > q.max_bytes) q.max_bytes = waiting;
  if (!p.wake && (p.waiting & ~p.paused) != 0) wake(port, packet);
}

// Takes space in the switch's buffer for the packet, or drops it. Returns whether there was space.
inline bool PortArbiter::find_room(PortId port, std::uint32_t packet, const Queue& queue) {
  const Packet& k = packets_[packet];
  const SwitchBuffers::Admission admission = buffers_.admit(ports_[port].buffer, queue, k);
  if (admission == SwitchBuffers::Admission::admitted) [[likely]]
    return true;
  if (admission == SwitchBuffers::Admission::refused) {
    ++state_.tallies[port].drops;
    discard(packet);
    return false;
  }
  back_pressure_.pause_sender(k.ingress, k.ingress_queue);
  return true;
}

inline void PortArbiter::on_departure(const Event& event) {
  const PortId port = event.target;
  Port& p = ports_[port];
  p.digest = event_digest(p.digest, event);
  const std::uint32_t ready = p.waiting & ~static_cast<std::uint32_t>(p.paused);
  if (ready == 0) {
    p.wake = false;
    if ((p.flags & fabric::kHasSource) != 0) source_->port_free(port);
    return;
  }
  // dequeue() may queue a frame at this port; this departure then serves it.
  const std::uint32_t packet = dequeue(port, next_priority(port, ready));
  p.wake = false;
  transmit(port, packet, packets_[packet].step);
  const std::uint32_t more = p.waiting & ~static_cast<std::uint32_t>(p.paused);
  if (more != 0) {
    wake(port, queue(port, static_cast<std::uint32_t>(std::countr_zero(more))).head);
  } else if ((p.flags & fabric::kHasSource) != 0) {
    wake(port, 0);
  }
}

inline std::uint32_t PortArbiter::next_priority(PortId port, std::uint32_t ready) {
  const auto first = static_cast<std::uint32_t>(std::countr_zero(ready));
  if ((ports_[port].flags & fabric::kArbitrated) == 0 || first < kDataPriority) [[likely]]
    return first;
  if ((ports_[port].flags & fabric::kOwnScheduler) != 0) [[unlikely]]
    return select_own(port, ready);
  return kDataPriority + state_.arbiter.select(port, ready >> kDataPriority, [&](std::uint32_t c) {
    return packets_[queue(port, kDataPriority + c).head].bytes;
  });
}

// Takes the first packet out of the queue and releases its buffer space.
inline std::uint32_t PortArbiter::dequeue(PortId port, std::uint32_t priority) {
  Port& p = ports_[port];
  Queue& q = queue(port, priority);
  const std::uint32_t packet = q.head;
  q.head = packets_[packet].next;
  --q.packets;
  q.bytes -= packets_[packet].bytes;
  if (q.head == kNoIndex) {
    q.tail = kNoIndex;
    p.waiting = static_cast<std::uint8_t>(p.waiting & ~(1U << priority));
    if (priority >= kDataPriority)
      state_.arbiter.emptied(port, priority - kDataPriority, p.waiting >> kDataPriority);
    if ((p.flags & fabric::kEscapes) != 0) [[unlikely]]
      let_escape(port, priority);
  }
  if ((p.flags & fabric::kBuffered) != 0) {
    if (buffers_.leave(p.buffer, packets_[packet])) [[unlikely]]
      back_pressure_.resume_sender(packets_[packet].ingress, packets_[packet].ingress_queue);
    if ((p.flags & fabric::kMarksAtEnqueue) == 0 && q.bytes > q.mark_above &&
        packets_[packet].kind == PacketKind::data) {
      buffers_.mark(port, packets_[packet], q.bytes);
    }
  }
  if ((p.flags & (fabric::kReturnsCredits | fabric::kOwnMarker)) != 0) [[unlikely]]
    leave_queue(port, packet);
  return packet;
}

inline void PortArbiter::transmit(PortId port, std::uint32_t packet, std::uint32_t step) {
  Port& p = ports_[port];
  Packet& k = packets_[packet];
  const Time now = loop_.now();
  const std::int64_t wire = static_cast<std::int64_t>(k.bytes) + p.overhead;
  const Time busy = p.ps_per_byte != 0 ? wire * p.ps_per_byte : links_.serialisation(port, wire);
  p.busy_until = now + busy;
  p.wire_bytes += wire;
  p.data_packets += k.kind == PacketKind::data ? 1 : 0;
  Time from = now + busy;
  if ((p.flags & fabric::kCutThrough) != 0) [[unlikely]]
    from = (p.flags & fabric::kReadsHeader) == 0 ? now : now + links_.header_time(port, k.bytes);
  if ((p.flags & fabric::kExamined) != 0 && !transmit_examined(port, packet, wire, from + p.delay))
      [[unlikely]]
    return;
  if (k.kind == PacketKind::link_control) [[unlikely]] {
    remote_event_.send_event(
        port, {now + busy + links_.delay(port), p.origin.next_key(), port ^ 1U, EventKind::link_control,
               static_cast<std::uint64_t>(k.psn) << 8 | k.message});
    packets_.release(packet);
    return;
  }
  if (k.traced) [[unlikely]]
    trace_sent(port, packet, from + p.delay);
  k.ingress = port;
  ++k.path;
  if ((p.flags & (fabric::kLeavesSet | fabric::kTellsDepartures | fabric::kOnlyLast)) == 0) [[likely]] {
    loop_.schedule(from + p.delay, p.origin, static_cast<EventKind>(step >> kStepShift),
                   step & ((1U << kStepShift) - 1), packet);
    return;
  }
  if ((p.flags & fabric::kOnlyLast) != 0 && !k.last) {  // the packet's arrival would have no effect
    packets_.release(packet);
    return;
  }
  const bool tells = (p.flags & fabric::kTellsDepartures) != 0 && k.kind == PacketKind::data;
  const Bytes bytes = k.bytes;
  if ((p.flags & fabric::kLeavesSet) != 0) {
    remote_event_.post(port, packet, from + p.delay, step);
  } else {
    loop_.schedule(from + p.delay, p.origin, static_cast<EventKind>(step >> kStepShift),
                   step & ((1U << kStepShift) - 1), packet);
  }
  if (tells) source_->departed(port, bytes);
}

}  // namespace netsim
