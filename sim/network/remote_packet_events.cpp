#include "sim/network/remote_packet_events.h"

#include <cstddef>
#include <cstring>

namespace netsim {

RemotePacketEvents::RemotePacketEvents(LogicalProcess& set, FabricState& state, PacketArena& packets)
    : set_(set), state_(state), packets_(packets) {
  for (const EventKind kind :
       {EventKind::arrival, EventKind::receive, EventKind::control, EventKind::deliver, EventKind::route}) {
    set_.set_remote_event_handler(
        kind,
        [](void* self, const RemoteEvent& remote_event, const std::byte* attached) {
          static_cast<RemotePacketEvents*>(self)->take(remote_event, attached);
        },
        this);
  }
}

void RemotePacketEvents::post(PortId port, std::uint32_t packet, Time arrival, std::uint32_t step) {
  const std::uint32_t to = state_.far_set[port];
  RemoteEvent& remote_event = set_.post(to, arrival);
  remote_event.event.time = arrival;
  remote_event.event.key = state_.ports[port].origin.next_key();
  remote_event.event.target = step & ((1U << kStepShift) - 1);
  remote_event.event.kind = static_cast<EventKind>(step >> kStepShift);
  std::memcpy(remote_event.data.data(), &packets_[packet], sizeof(Packet));
  // The intermediate takes the place of the link to the next packet of a queue, because the packet is in
  // none.
  if (state_.routing.detours())
    std::memcpy(remote_event.data.data() + offsetof(Packet, next), &packets_.via(packet),
                sizeof(Packet::next));
  if (state_.telemetry) remote_event.event.argument = set_.attach(to, packets_.telemetry(packet));
  if (packets_[packet].traced) {
    const std::uint64_t at = set_.attach(to, packets_.trace(packet));
    if (!state_.telemetry) remote_event.event.argument = at;
  }
  if (state_.tags) [[unlikely]] {
    const std::uint64_t at = set_.attach(to, packets_.tag(packet));
    if (!state_.telemetry && !packets_[packet].traced) remote_event.event.argument = at;
  }
  packets_.release(packet);
}

void RemotePacketEvents::take(const RemoteEvent& remote_event, const std::byte* attached) {
  const std::uint32_t index = packets_.allocate();
  std::memcpy(&packets_[index], remote_event.data.data(), sizeof(Packet));
  if (state_.routing.detours()) packets_.via(index) = packets_[index].next;
  if (state_.telemetry) {
    std::memcpy(&packets_.telemetry(index), attached + remote_event.event.argument, sizeof(Telemetry));
    attached += sizeof(Telemetry);  // the trace follows the telemetry
  }
  if (packets_[index].traced) {
    std::memcpy(&packets_.trace(index), attached + remote_event.event.argument, sizeof(PacketTrace));
    attached += sizeof(PacketTrace);
  }
  if (state_.tags) [[unlikely]]
    std::memcpy(&packets_.tag(index), attached + remote_event.event.argument, sizeof(PacketTag));
  set_.loop().insert({remote_event.event.time, remote_event.event.key, remote_event.event.target,
                      remote_event.event.kind, index});
}

void RemotePacketEvents::send_event(PortId port, const Event& event) {
  if ((state_.ports[port].flags & fabric::kLeavesSet) != 0) {
    set_.post(state_.far_set[port], event.time).event = event;
  } else {
    set_.loop().insert(event);
  }
}

}  // namespace netsim
