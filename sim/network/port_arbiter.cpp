#include "sim/network/port_arbiter.h"

#include <cstddef>

namespace netsim {

PortArbiter::PortArbiter(EventLoop& loop, FabricState& state, BackPressure& back_pressure, PacketMail& mail)
    : loop_(loop),
      state_(state),
      port_count_(state.ports.size()),
      ports_(state.ports.data()),
      queues_(state.queues.data()),
      ports_base_(ports_),
      data_queues_base_(queues_ + port_count_ * kDataPriority),
      forwarding_(state),
      buffers_(state),
      links_(state),
      back_pressure_(back_pressure),
      mail_(mail) {
  if (state.telemetry) packets_.enable_telemetry();
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

// What only some ports have: faults, credits, telemetry. False: the packet was lost on the link.
bool PortArbiter::transmit_examined(PortId port, std::uint32_t packet, std::int64_t wire, Time arrival) {
  Port& p = ports_[port];
  Packet& k = packets_[packet];
  if ((p.flags & fabric::kFaulty) != 0 && links_.loses(port, k, arrival)) {
    if (k.kind == PacketKind::link_control) back_pressure_.frame_lost(port, k);
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

// The credit last: its frame may leave by the same port and then comes after the packet.
void PortArbiter::transmit_and_return_credit(PortId port, std::uint32_t packet) {
  const Packet k = packets_[packet];
  transmit(port, packet);
  back_pressure_.return_credit(k.ingress, k.priority, k.bytes);
}

void PortArbiter::on_route(const Event& event) {
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Packet& k = packets_[packet];
  const PortId port = forwarding_.choose(event.target, k, *this);
  if (port == kNoId) {
    ++state_.tallies[k.ingress ^ 1U].no_route;
    discard(packet);
    return;
  }
  witness(port, event);
  enqueue(port, packet);
}

// It leaves the switch without having waited there.
void PortArbiter::discard(std::uint32_t packet) {
  const Packet& k = packets_[packet];
  back_pressure_.return_credit(k.ingress, k.priority, k.bytes);
  packets_.release(packet);
}

void PortArbiter::hold(PortId port, std::uint32_t priority) {
  Port& p = ports_[port];
  if ((p.flags & fabric::kBuffered) != 0 && !is_held(port, priority)) ++held_back_;
  const std::size_t index = queue_index(port, priority);
  if (is_held(port, priority)) state_.held_time[index] += loop_.now() - state_.paused_since[index];
  p.paused = static_cast<std::uint8_t>(p.paused | 1U << priority);
  state_.paused_since[index] = loop_.now();
}

void PortArbiter::release(PortId port, std::uint32_t priority) {
  Port& p = ports_[port];
  const std::size_t index = queue_index(port, priority);
  state_.held_time[index] += loop_.now() - state_.paused_since[index];
  p.paused = static_cast<std::uint8_t>(p.paused & ~(1U << priority));
  if ((p.flags & fabric::kBuffered) != 0) --held_back_;
  if (p.waiting != 0 || (p.flags & fabric::kHasSource) != 0) wake(port, 0);
}

}  // namespace netsim
