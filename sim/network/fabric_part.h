// FabricPart: the ports, links and switches of one set of atoms, packet by packet (see fabric.h for what they
// do). What leaves the set goes as mail.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "sim/core/atom_set.h"
#include "sim/network/fabric_state.h"
#include "sim/network/packet.h"

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

class FabricPart {
 public:
  FabricPart(AtomSet& set, FabricState& state);
  FabricPart(const FabricPart&) = delete;
  FabricPart& operator=(const FabricPart&) = delete;

  void set_source(PacketSource* source) { source_ = source; }
  // Whether the source has packets for this port: only then it is asked, whenever the port has nothing else
  // to send.
  void set_source_ready(PortId port, bool ready) {
    Port& p = ports_[port];
    p.flags = ready ? p.flags | fabric::kHasSource : p.flags & ~fabric::kHasSource;
  }
  void set_departure_hook(PortId port) { ports_[port].flags |= fabric::kTellsDepartures; }

  PacketArena& packets() { return packets_; }
  // A packet that is at `port`'s node: transmitted at once if it may, else queued (or dropped). Takes the
  // packet over. packet.path must index the step after `port`.
  void enqueue(PortId port, std::uint32_t packet);
  // Transmits a packet made for the free port `port`. Only from PacketSource::port_free.
  void transmit(PortId port, std::uint32_t packet) { transmit(port, packet, next_step(packets_[packet])); }
  // Makes sure that the port asks for work as soon as it is free. `packet`: what it will probably send, to
  // prefetch.
  void wake(PortId port, std::uint32_t packet = 0) {
    Port& p = ports_[port];
    if (p.wake) return;
    p.wake = true;
    loop_.schedule(std::max(loop_.now(), p.busy_until), p.origin, EventKind::departure, port, packet);
  }
  // A congestion notification is about to leave by this port, alone or in an ACK.
  void count_cnp(PortId port) { ++rare_[port].cnps; }
  Origin& origin(PortId port) { return ports_[port].origin; }
  Time serialisation(Bytes wire, BitRate rate) const { return state_.serialisation(wire, rate); }
  // The NIC's own choice among its classes, by the switches' scheduler: `ready`, bit per class, of which at
  // least one is not paused; `head(c)`: bytes of the packet that class c would send.
  template <class Head>
  std::uint32_t select_class(PortId port, std::uint32_t ready, Head head) {
    return state_.arbiter.select(port, ready, head);
  }
  void class_emptied(PortId port, std::uint32_t traffic_class) {
    state_.arbiter.emptied(port, traffic_class);
  }
  // Bit per data class that must not be sent.
  std::uint32_t paused_classes(PortId port) const {
    return static_cast<std::uint32_t>(ports_[port].paused) >> kDataPriority;
  }
  // The priority that congestion notifications travel in: with credits there is none without flow control.
  std::uint8_t cnp_priority() const {
    return state_.parameters.flow_control == FlowControl::credits ? kDataPriority : kCnpPriority;
  }

  // For the fabric as a whole, between events.
  void abandon(PortId port);
  void come_up(PortId port);
  // Queues of switches that are held back now.
  std::uint64_t held_back() const { return held_back_; }

  // Digest of an event at an entity: order matters within one entity, entities are added up. What the entity
  // is called is no part of it.
  static std::uint64_t digest(std::uint64_t before, const Event& event) {
    return (before ^ (static_cast<std::uint64_t>(event.time) + event.key)) * 0x9e3779b97f4a7c15ULL +
           static_cast<std::uint64_t>(event.kind);
  }

 private:
  using Port = fabric::Port;
  using Queue = fabric::Queue;
  using Ingress = fabric::Ingress;
  using Buffer = fabric::Buffer;
  using Rare = fabric::Rare;
  using Credits = fabric::Credits;

  std::size_t queue_index(PortId port, std::uint32_t priority) const {
    return static_cast<std::size_t>(priority) * port_count_ + fabric::slot(port, port_count_);
  }
  Queue& queue(PortId port, std::uint32_t priority) { return queues_[queue_index(port, priority)]; }
  std::size_t class_index(PortId port, std::uint32_t priority) const {
    return fabric::slot(port, port_count_) * classes_ + (priority - kDataPriority);
  }
  Time& paused_since(PortId port, std::uint32_t priority) {
    return state_.paused_since[queue_index(port, priority)];
  }
  bool lossless(std::uint32_t priority) const { return (lossless_ >> priority & 1) != 0; }

  // What comes after the packet's present port. The path has no step after the last one: link control has no
  // path at all.
  std::uint32_t next_step(const Packet& packet) const {
    return packet.kind == PacketKind::link_control ? 0 : paths_[packet.path];
  }

  void set_handlers();
  void transmit(PortId port, std::uint32_t packet, std::uint32_t step);
  void on_arrival(const Event& event);
  void on_departure(const Event& event);
  void on_link_control(const Event& event);
  Time header_time(PortId port, Bytes bytes) const;
  bool transmit_special(PortId port, std::uint32_t packet, std::int64_t wire, Time arrival);
  void post_packet(PortId port, std::uint32_t packet, Time arrival, std::uint32_t step);
  void take_packet(const Mail& mail, const std::byte* attached);
  void send_event(PortId port, const Event& event);
  void receive_pause(PortId port, std::uint32_t priority);
  void set_paused(PortId port, std::uint32_t priority);
  void set_running(PortId port, std::uint32_t priority);
  std::uint32_t dequeue(PortId port, std::uint32_t priority);
  void drop(PortId port, std::uint32_t packet);
  void discard(std::uint32_t packet);
  bool admit(PortId port, const Packet& packet);
  bool admit_lossless(Buffer& buffer, const Packet& packet);
  void leave_buffer(PortId port, const Packet& packet);
  void leave_lossless(Buffer& buffer, const Packet& packet);

  // shared_buffer.cpp
  bool admit_other(PortId port, const Packet& packet);
  void leave_other(PortId port, const Packet& packet);
  void pause_sender(Ingress& in, const Packet& packet);
  void resume_sender(Ingress& in, const Packet& packet);
  void send_pfc(PortId paused_port, std::uint32_t priority, bool pause);
  void send_control(PortId to, std::uint32_t message, std::uint32_t credit, Bytes frame);
  void mark(PortId port, Packet& packet, Bytes queue_bytes);
  void consume_credit(PortId port, std::uint32_t priority, Bytes bytes);
  void transmit_and_return_credit(PortId port, std::uint32_t packet);
  void return_credit(PortId port, std::uint32_t priority, Bytes bytes);
  void receive_credit(PortId port, std::uint32_t priority, Bytes bytes);

  // packet_routing.cpp
  void on_route(const Event& event);
  PortId choose_port(NodeId node, std::span<const PortId> hops, std::uint8_t priority);
  PortId least_loaded(std::span<const PortId> hops, std::uint32_t first, std::uint8_t priority) const;

  EventLoop& loop_;
  AtomSet& set_;
  FabricState& state_;
  PacketSource* source_ = nullptr;
  // The state's, as far as every packet needs them.
  const std::size_t port_count_;
  const std::uint32_t classes_, lossless_, queue_limit_;
  const Bytes reserve_;
  Port* ports_;
  Queue* queues_;
  Ingress* ingress_;
  Buffer* buffers_;
  Rare* rare_;
  const std::uint32_t* paths_;
  const void* ports_base_;
  const void* data_queues_base_;  // of class 0
  const void* paths_base_;
  PacketArena packets_;
  std::uint64_t held_back_ = 0;
};

// --- the packet path, inline
// -----------------------------------------------------------------------------------------

inline void FabricPart::transmit(PortId port, std::uint32_t packet, std::uint32_t step) {
  Port& p = ports_[port];
  Packet& k = packets_[packet];
  const Time now = loop_.now();
  const std::int64_t wire = static_cast<std::int64_t>(k.bytes) + p.overhead;
  const Time busy = p.ps_per_byte != 0 ? wire * p.ps_per_byte : serialisation(wire, rare_[port].rate);
  p.busy_until = now + busy;
  p.wire_bytes += wire;
  p.data_packets += k.kind == PacketKind::data ? 1 : 0;
  Time from = now + busy;
  if ((p.flags & fabric::kCutThrough) != 0) [[unlikely]]
    from = (p.flags & fabric::kReadsHeader) == 0 ? now : now + header_time(port, k.bytes);
  if ((p.flags & fabric::kSpecial) != 0 && !transmit_special(port, packet, wire, from + p.delay)) [[unlikely]]
    return;
  if (k.kind == PacketKind::link_control) [[unlikely]] {
    send_event(port, {now + busy + rare_[port].link_delay, p.origin.next_key(), port ^ 1U,
                      EventKind::link_control, static_cast<std::uint64_t>(k.psn) << 8 | k.message});
    packets_.release(packet);
    return;
  }
  k.ingress = port;
  ++k.path;
  if ((p.flags & (fabric::kCut | fabric::kTellsDepartures | fabric::kOnlyLast)) == 0) [[likely]] {
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
  if ((p.flags & fabric::kCut) != 0) {
    post_packet(port, packet, from + p.delay, step);
  } else {
    loop_.schedule(from + p.delay, p.origin, static_cast<EventKind>(step >> kStepShift),
                   step & ((1U << kStepShift) - 1), packet);
  }
  if (tells) source_->departed(port, bytes);
}

inline bool FabricPart::admit(PortId port, const Packet& packet) {
  if (packet.priority == kControlPriority) return true;
  if (queue(port, packet.priority).packets >= queue_limit_) return false;
  if (!lossless(packet.priority)) return admit_other(port, packet);
  return admit_lossless(buffers_[ports_[port].buffer], packet);
}

inline bool FabricPart::admit_lossless(Buffer& buffer, const Packet& packet) {
  Ingress& in = ingress_[class_index(packet.ingress, packet.priority)];
  const Bytes size = packet.bytes;
  const Bytes threshold = buffer.threshold();
  const Bytes beyond = std::max<Bytes>(in.used + size - reserve_, 0);
  const Bytes more = beyond - std::max<Bytes>(in.used - reserve_, 0);  // of the shared pool
  if (in.headroom_used == 0 && beyond <= std::max<Bytes>(threshold, 0) && more <= buffer.free()) [[likely]] {
    buffer.shared_used += more;
    in.used += size;
  } else if (in.headroom_used + size <= in.headroom) {
    in.headroom_used += size;
    in.max_headroom_used = std::max(in.max_headroom_used, static_cast<std::uint32_t>(in.headroom_used));
  } else {
    return false;
  }
  if (!in.pausing && (in.headroom_used > 0 || in.used - reserve_ >= buffer.threshold())) [[unlikely]]
    pause_sender(in, packet);
  return true;
}

inline void FabricPart::leave_buffer(PortId port, const Packet& packet) {
  if (packet.priority == kControlPriority) return;
  if (!lossless(packet.priority)) {
    leave_other(port, packet);
  } else {
    leave_lossless(buffers_[ports_[port].buffer], packet);
  }
}

inline void FabricPart::leave_lossless(Buffer& buffer, const Packet& packet) {
  Ingress& in = ingress_[class_index(packet.ingress, packet.priority)];
  const Bytes from_headroom = std::min<Bytes>(in.headroom_used, packet.bytes);
  in.headroom_used -= from_headroom;
  const Bytes before = std::max<Bytes>(in.used - reserve_, 0);
  in.used -= packet.bytes - from_headroom;
  const Bytes after = std::max<Bytes>(in.used - reserve_, 0);
  buffer.shared_used -= before - after;
  if (!in.pausing || in.headroom_used != 0) [[likely]]
    return;
  if (after == 0 || after + state_.parameters.resume_offset <= buffer.threshold()) resume_sender(in, packet);
}

inline void FabricPart::enqueue(PortId port, std::uint32_t packet) {
  Port& p = ports_[port];
  const std::uint8_t priority = packets_[packet].priority;
  if (!p.wake && loop_.now() >= p.busy_until && ((p.waiting & ~p.paused) | (p.paused >> priority & 1)) == 0)
      [[likely]] {
    if ((p.flags & fabric::kReturnsCredits) != 0) [[unlikely]] {
      transmit_and_return_credit(port, packet);
    } else {
      transmit(port, packet);
    }
    if ((p.flags & fabric::kHasSource) != 0) wake(port);
    return;
  }
  if ((p.flags & fabric::kBuffered) != 0 && !admit(port, packets_[packet])) [[unlikely]] {
    drop(port, packet);
    return;
  }
  Packet& k = packets_[packet];  // only now: admit() may have made a PFC frame
  Queue& q = queue(port, priority);
  if ((p.flags & fabric::kMarksAtEnqueue) != 0 && q.bytes > q.mark_above && k.kind == PacketKind::data) {
    mark(port, k, q.bytes);
  }
  k.next = fabric::kNone;
  k.step = next_step(k);  // nothing waits for it here; at the departure the next event would
  if (q.head == fabric::kNone) {
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

}  // namespace netsim
