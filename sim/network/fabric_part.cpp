#include "sim/network/fabric_part.h"

#include <cstddef>
#include <cstring>

namespace netsim {

FabricPart::FabricPart(AtomSet& set, FabricState& state)
    : loop_(set.loop()),
      set_(set),
      state_(state),
      port_count_(state.ports.size()),
      classes_(state.classes),
      lossless_(state.lossless),
      queue_limit_(state.queue_limit),
      reserve_(state.parameters.reserve),
      ports_(state.ports.data()),
      queues_(state.queues.data()),
      ingress_(state.ingress.data()),
      buffers_(state.buffers.data()),
      rare_(state.rare.data()),
      paths_(state.paths.data()),
      ports_base_(ports_),
      data_queues_base_(queues_ + port_count_ * kDataPriority),
      paths_base_(paths_) {
  if (state.telemetry) packets_.enable_telemetry();
  set_handlers();
}

void FabricPart::set_handlers() {
  loop_.set_handler<&FabricPart::on_arrival>(EventKind::arrival, *this);
  loop_.set_handler<&FabricPart::on_departure>(EventKind::departure, *this);
  loop_.set_handler<&FabricPart::on_link_control>(EventKind::link_control, *this);
  loop_.set_handler<&FabricPart::on_route>(EventKind::route, *this);
  for (const EventKind kind :
       {EventKind::arrival, EventKind::receive, EventKind::control, EventKind::deliver, EventKind::route}) {
    set_.set_mail_handler(
        kind,
        [](void* self, const Mail& mail, const std::byte* attached) {
          static_cast<FabricPart*>(self)->take_packet(mail, attached);
        },
        this);
  }
  loop_.set_prefetch(EventKind::arrival, &ports_base_, sizeof(Port), packets_.base(), sizeof(Packet));
  loop_.set_prefetch(EventKind::departure, &ports_base_, sizeof(Port), packets_.base(), sizeof(Packet));
  for (const EventKind kind : {EventKind::arrival, EventKind::receive})
    loop_.prefetch_behind(kind, offsetof(Packet, path), &paths_base_);
  for (const EventKind kind : {EventKind::arrival, EventKind::departure})
    loop_.prefetch_also(kind, &data_queues_base_, sizeof(Queue), port_count_ / 2 * sizeof(Queue));
}

Time FabricPart::header_time(PortId port, Bytes bytes) const { return state_.header_time(port, bytes); }

// What only some ports have: credits, faults, telemetry. False: the packet was lost on the link.
bool FabricPart::transmit_special(PortId port, std::uint32_t packet, std::int64_t wire, Time arrival) {
  Port& p = ports_[port];
  Packet& k = packets_[packet];
  Rare& rare = rare_[port];
  if ((p.flags & fabric::kFaulty) != 0) {
    const bool both = state_.needs_both_ways(port, k.priority);
    const bool cut =
        both ? rare.link_down || arrival > rare.link_next_down : rare.down || arrival > rare.next_down;
    if (cut ||
        (rare.loss > 0 && k.kind != PacketKind::link_control && rare.loss_random.uniform() < rare.loss)) {
      ++rare.lost;
      // Credits are totals in InfiniBand's frames: what one that is lost would have given, a later one gives.
      if (k.kind == PacketKind::link_control && k.psn != 0)
        ingress_[class_index(port ^ 1U, k.message >> 2)].headroom_used += k.psn;
      if ((p.flags & fabric::kTellsDepartures) != 0 && k.kind == PacketKind::data)
        source_->departed(port, k.bytes);
      packets_.release(packet);
      return false;
    }
  }
  if (k.kind == PacketKind::link_control) return true;
  if ((p.flags & fabric::kCredits) != 0) consume_credit(port, k.priority, k.bytes);
  if ((p.flags & fabric::kTelemetry) != 0 && k.kind == PacketKind::data) {
    Telemetry& t = packets_.telemetry(packet);
    if (t.hops < kTelemetryHops)
      t.hop[t.hops++] = {loop_.now(), p.wire_bytes - wire, state_.queued(port), rare.rate};
  }
  return true;
}

// ---- To and from other sets

// The packet goes to the far end of `port`, in another set.
void FabricPart::post_packet(PortId port, std::uint32_t packet, Time arrival, std::uint32_t step) {
  const std::uint32_t to = state_.far_set[port];
  Mail& mail = set_.post(to, arrival);
  mail.event.time = arrival;
  mail.event.key = ports_[port].origin.next_key();
  mail.event.target = step & ((1U << kStepShift) - 1);
  mail.event.kind = static_cast<EventKind>(step >> kStepShift);
  std::memcpy(mail.data.data(), &packets_[packet], sizeof(Packet));
  if (state_.telemetry) mail.event.argument = set_.attach(to, packets_.telemetry(packet));
  packets_.release(packet);
}

void FabricPart::take_packet(const Mail& mail, const std::byte* attached) {
  const std::uint32_t index = packets_.allocate();
  std::memcpy(&packets_[index], mail.data.data(), sizeof(Packet));
  if (state_.telemetry)
    std::memcpy(&packets_.telemetry(index), attached + mail.event.argument, sizeof(Telemetry));
  loop_.insert({mail.event.time, mail.event.key, mail.event.target, mail.event.kind, index});
}

// An event at the far end of `port`, which carries nothing else.
void FabricPart::send_event(PortId port, const Event& event) {
  if ((ports_[port].flags & fabric::kCut) != 0) {
    set_.post(state_.far_set[port], event.time).event = event;
  } else {
    loop_.insert(event);
  }
}

// ---- Events

// Flat: calls cost a packet-hop 35 of some 1,150 instructions.
[[gnu::flatten]] void FabricPart::on_arrival(const Event& event) {
  Port& p = ports_[event.target];
  p.digest = digest(p.digest, event);
  enqueue(event.target, static_cast<std::uint32_t>(event.argument));
}

[[gnu::flatten]] void FabricPart::on_departure(const Event& event) {
  const PortId port = event.target;
  Port& p = ports_[port];
  p.digest = digest(p.digest, event);
  const std::uint32_t ready = p.waiting & ~static_cast<std::uint32_t>(p.paused);
  if (ready != 0) {
    auto priority = static_cast<std::uint32_t>(std::countr_zero(ready));
    if ((p.flags & fabric::kArbitrated) != 0 && priority >= kDataPriority) [[unlikely]] {
      priority = kDataPriority + state_.arbiter.select(port, ready >> kDataPriority, [&](std::uint32_t c) {
        return packets_[queue(port, kDataPriority + c).head].bytes;
      });
    }
    const std::uint32_t packet = dequeue(port, priority);  // may queue a frame here: this departure serves it
    p.wake = false;
    transmit(port, packet, packets_[packet].step);
    const std::uint32_t more = p.waiting & ~static_cast<std::uint32_t>(p.paused);
    if (more != 0) {
      wake(port, queue(port, static_cast<std::uint32_t>(std::countr_zero(more))).head);
    } else if ((p.flags & fabric::kHasSource) != 0) {
      wake(port);
    }
    return;
  }
  p.wake = false;
  if ((p.flags & fabric::kHasSource) != 0) source_->port_free(port);
}

std::uint32_t FabricPart::dequeue(PortId port, std::uint32_t priority) {
  Port& p = ports_[port];
  Queue& q = queue(port, priority);
  const std::uint32_t packet = q.head;
  q.head = packets_[packet].next;
  --q.packets;
  q.bytes -= packets_[packet].bytes;
  if (q.head == fabric::kNone) {
    q.tail = fabric::kNone;
    p.waiting = static_cast<std::uint8_t>(p.waiting & ~(1U << priority));
    if (priority >= kDataPriority) state_.arbiter.emptied(port, priority - kDataPriority);
  }
  if ((p.flags & fabric::kBuffered) != 0) {
    leave_buffer(port, packets_[packet]);
    if ((p.flags & fabric::kMarksAtEnqueue) == 0 && q.bytes > q.mark_above &&
        packets_[packet].kind == PacketKind::data) {
      mark(port, packets_[packet], q.bytes);
    }
  }
  if ((p.flags & fabric::kReturnsCredits) != 0) [[unlikely]]
    return_credit(packets_[packet].ingress, priority, packets_[packet].bytes);
  return packet;
}

void FabricPart::on_link_control(const Event& event) {
  const PortId port = event.target;
  ports_[port].digest = digest(ports_[port].digest, event);
  const auto priority = static_cast<std::uint32_t>(event.argument >> 2 & 63);
  switch (static_cast<LinkControl>(event.argument & 3)) {
    case LinkControl::pause:
      receive_pause(port, priority);
      return;
    case LinkControl::resume:
      set_running(port, priority);
      return;
    case LinkControl::credit:
      receive_credit(port, priority, static_cast<Bytes>(event.argument >> 8));
      return;
  }
}

void FabricPart::receive_pause(PortId port, std::uint32_t priority) {
  Rare& rare = rare_[port];
  if (rare.abandoned) return;
  const bool held = (ports_[port].paused >> priority & 1) != 0;
  if (held && (rare.unheard >> priority & 1) == 0) return;  // said again
  rare.unheard = static_cast<std::uint8_t>(rare.unheard & ~(1U << priority));
  ++rare.pauses;
  if (held) {
    paused_since(port, priority) = loop_.now();
  } else {
    set_paused(port, priority);
  }
}

void FabricPart::set_paused(PortId port, std::uint32_t priority) {
  Port& p = ports_[port];
  p.paused = static_cast<std::uint8_t>(p.paused | 1U << priority);
  paused_since(port, priority) = loop_.now();
  if ((p.flags & fabric::kBuffered) != 0) ++held_back_;
}

void FabricPart::set_running(PortId port, std::uint32_t priority) {
  Port& p = ports_[port];
  if ((p.paused >> priority & 1) == 0) return;
  p.paused = static_cast<std::uint8_t>(p.paused & ~(1U << priority));
  if ((p.flags & fabric::kBuffered) != 0) --held_back_;
  Rare& rare = rare_[port];
  if ((rare.unheard >> priority & 1) == 0) rare.paused_time += loop_.now() - paused_since(port, priority);
  rare.unheard = static_cast<std::uint8_t>(rare.unheard & ~(1U << priority));
  if (p.waiting != 0 || (p.flags & fabric::kHasSource) != 0) wake(port);
}

void FabricPart::drop(PortId port, std::uint32_t packet) {
  ++rare_[port].drops;
  discard(packet);
}

// It leaves the switch without having waited there.
void FabricPart::discard(std::uint32_t packet) {
  const Packet& k = packets_[packet];
  return_credit(k.ingress, k.priority, k.bytes);
  packets_.release(packet);
}

}  // namespace netsim
