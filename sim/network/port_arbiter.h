// PortArbiter: the ports of one set of atoms: what waits in their queues, which packet goes next and when,
// and its transmission. A packet's whole walk through a switch is in this file and switch_buffers.h: it
// arrives (on_arrival), is sent at once or joins a queue (enqueue), its turn comes (on_departure), and it is
// on its way to the next port (transmit).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>

#include "sim/core/event_loop.h"
#include "sim/network/aggregation/switch_fans.h"
#include "sim/network/back_pressure.h"
#include "sim/network/fabric_state.h"
#include "sim/network/link_state.h"
#include "sim/network/packet.h"
#include "sim/network/packet_forwarding.h"
#include "sim/network/remote_packet_events.h"
#include "sim/network/switch_buffers.h"

namespace netsim {

// Who makes packets for a port on demand (a NIC).
class PacketSource {
 public:
  virtual ~PacketSource() = default;
  // The port could transmit and nothing waits in it: transmit() one packet, then wake() the port if there are
  // more.
  virtual void port_free(PortId port) = 0;
  // A data packet left the port `port`, which was marked with set_departure_hook().
  virtual void departed(PortId port, Bytes bytes) = 0;
};

class PortArbiter {
 public:
  // Owns the packets of its set. `back_pressure` and `remote events` may be made after it.
  PortArbiter(EventLoop& loop, FabricState& state, BackPressure& back_pressure,
              RemotePacketEvents& remote_event);
  PortArbiter(const PortArbiter&) = delete;
  PortArbiter& operator=(const PortArbiter&) = delete;

  PacketArena& packets() { return packets_; }
  const PacketArena& packets() const { return packets_; }
  SwitchBuffers& buffers() { return buffers_; }
  SwitchFans& fans() { return fans_; }
  Origin& origin(PortId port) { return ports_[port].origin; }

  void set_source(PacketSource* source) { source_ = source; }
  // Whether the source has packets for this port: only then it is asked, whenever the port has nothing else
  // to send.
  void set_source_ready(PortId port, bool ready) {
    Port& p = ports_[port];
    p.flags = ready ? p.flags | fabric::kHasSource : p.flags & ~fabric::kHasSource;
  }
  void set_departure_hook(PortId port) { ports_[port].flags |= fabric::kTellsDepartures; }

  // A packet that is at `port`'s node: transmitted at once if it may, else queued (or dropped). Takes the
  // packet over. packet.path must index the step after `port`.
  void enqueue(PortId port, std::uint32_t packet);
  // Transmits a packet made for the free port `port`. Only from PacketSource::port_free.
  void transmit(PortId port, std::uint32_t packet) {
    transmit(port, packet, forwarding_.next_step(packets_[packet]));
  }
  // Makes sure that the port asks for work as soon as it is free. `next`: what it will probably send, to
  // prefetch: a packet, or in the high half the queue pair that will make one.
  void wake(PortId port, std::uint64_t next) { wake(port, next, ports_[port].origin); }
  // In the order of another port's doings: ports that it wakes for the same time come in the order in which
  // it does.
  void wake(PortId port, std::uint64_t next, Origin& by) {
    Port& p = ports_[port];
    if (p.wake) return;
    p.wake = true;
    loop_.schedule(std::max(loop_.now(), p.busy_until), by, EventKind::departure, port, next);
  }

  // A priority of the port may not be sent from now on; counts anew how long, if it might not before.
  void hold(PortId port, std::uint32_t priority);
  // It may be sent again. It was held.
  void release(PortId port, std::uint32_t priority);
  bool is_held(PortId port, std::uint32_t priority) const {
    return (ports_[port].pressed >> priority & 1) != 0;
  }
  // Whether it may not be sent, for that reason or because its circuit is dark.
  bool is_stopped(PortId port, std::uint32_t priority) const {
    return (ports_[port].paused >> priority & 1) != 0;
  }
  // Between events. The circuit goes dark: nothing leaves by it, link control neither; or carries light
  // again.
  void darken(PortId port);
  void light(PortId port);
  // Between events. What waits there for a switch's choice is led on by other ways, if there are any.
  void reroute(PortId port);
  // For how long it has been held back, in all.
  Time held_time(PortId port, std::uint32_t priority) const {
    const std::size_t index = queue_index(port, priority);
    return state_.held_time[index] + (is_held(port, priority) ? loop_.now() - state_.paused_since[index] : 0);
  }
  // Queues of switches that are held back now.
  std::uint64_t held_back() const { return held_back_; }

  // What adaptive routing compares: held back or not, the bytes that wait, the time until the port is free.
  std::tuple<bool, Bytes, Time> load(PortId port, std::uint32_t priority) const {
    return {is_stopped(port, priority), state_.queued(port),
            std::max<Time>(ports_[port].busy_until - loop_.now(), 0)};
  }
  // The event is part of what happened at the port.
  void witness(PortId port, const Event& event) {
    ports_[port].digest = event_digest(ports_[port].digest, event);
  }

  void on_arrival(const Event& event) {
    witness(event.target, event);
    enqueue(event.target, static_cast<std::uint32_t>(event.argument));
  }
  void on_departure(const Event& event);
  // A packet is at a switch that chooses its next hop.
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
  void transmit_and_return_credit(PortId port, std::uint32_t packet);
  std::uint32_t next_priority(PortId port, std::uint32_t ready);
  std::uint32_t dequeue(PortId port, std::uint32_t priority);
  void on_fan(const Event& event);
  void copy(const SwitchFans::At& at, std::uint32_t packet);
  void leave(std::uint32_t packet, const SwitchFans::Branch& branch, Time latency);
  [[noreturn]] void lose_of_fan(PortId port);
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
  void join(PortId port, std::uint32_t priority, std::uint32_t packet);
  bool lead_on(PortId port, std::uint32_t packet);

  EventLoop& loop_;
  FabricState& state_;
  PacketSource* source_ = nullptr;
  // The state's, as far as every packet needs them.
  const std::size_t port_count_;
  Port* ports_;
  Queue* queues_;
  const void* ports_base_;
  const void* data_queues_base_;  // of class 0
  PacketArena packets_;
  PacketForwarding forwarding_;
  SwitchFans fans_;
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
    if ((p.flags & fabric::kReturnsCredits) != 0) [[unlikely]] {
      transmit_and_return_credit(port, packet);
    } else {
      transmit(port, packet);
    }
    if ((p.flags & fabric::kHasSource) != 0) wake(port, 0);
    return;
  }
  Queue& q = queue(port, priority);
  if ((p.flags & fabric::kBuffered) != 0 && !find_room(port, packet, q)) [[unlikely]]
    return;
  Packet& k = packets_[packet];  // only now: find_room() may have made a PFC frame
  if ((p.flags & fabric::kMarksAtEnqueue) != 0 && q.bytes > q.mark_above && k.kind == PacketKind::data) {
    buffers_.mark(port, k, q.bytes);
  }
  if (k.traced) [[unlikely]]
    trace_queued(port, packet);
  k.next = kNoIndex;
  k.step = forwarding_.next_step(k);  // nothing waits for it here; at the departure the next event would
  if (q.head == kNoIndex) {
    q.head = q.tail = packet;
    p.waiting = static_cast<std::uint8_t>(p.waiting | 1U << priority);
  } else {
    packets_[q.tail].next = packet;
    q.tail = packet;
  }
  ++q.packets;
  q.bytes += k.bytes;
  Bytes waiting = q.bytes;
  if ((p.waiting & (p.waiting - 1)) != 0) [[unlikely]]
    waiting = state_.queued(port);  // of several priorities
  if (waiting > q.max_bytes) q.max_bytes = waiting;
  if (!p.wake && (p.waiting & ~p.paused) != 0) wake(port, packet);
}

// Room in the switch's buffer, or else the packet is dropped.
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
  back_pressure_.pause_sender(k.ingress, k.came_in);
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
  // dequeue() may queue a frame here: this departure serves it.
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
  return kDataPriority + state_.arbiter.select(port, ready >> kDataPriority, [&](std::uint32_t c) {
    return packets_[queue(port, kDataPriority + c).head].bytes;
  });
}

// Takes the first packet out of the queue and the buffer.
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
      back_pressure_.resume_sender(packets_[packet].ingress, packets_[packet].came_in);
    if ((p.flags & fabric::kMarksAtEnqueue) == 0 && q.bytes > q.mark_above &&
        packets_[packet].kind == PacketKind::data) {
      buffers_.mark(port, packets_[packet], q.bytes);
    }
  }
  if ((p.flags & fabric::kReturnsCredits) != 0) [[unlikely]]
    back_pressure_.return_credit(packets_[packet].ingress, packets_[packet].came_in, packets_[packet].bytes);
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
  if ((p.flags & fabric::kOnlyLast) != 0 && !k.last) {  // nothing would happen when it is there
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
