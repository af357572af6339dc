// FabricShard: the ports, links and switches of one set of atoms (see fabric.h for what they do), put
// together from the objects that do it, and as hosts see them.
//
//   PortArbiter       queues, departures, transmissions; the packets
//     PacketForwarding  where a packet goes next
//     SwitchBuffers     who may wait in a switch
//     LinkState         how long a link takes, and what it loses
//   BackPressure      pauses and credits, as said over the links
//   RemotePacketEvents        to and from other sets
#pragma once

#include <cstdint>

#include "sim/core/logical_process.h"
#include "sim/network/back_pressure.h"
#include "sim/network/fabric_state.h"
#include "sim/network/packet.h"
#include "sim/network/port_arbiter.h"
#include "sim/network/remote_packet_events.h"

namespace netsim {

class FabricShard {
 public:
  FabricShard(LogicalProcess& set, FabricState& state);
  FabricShard(const FabricShard&) = delete;
  FabricShard& operator=(const FabricShard&) = delete;

  // As of PortArbiter.
  void set_source(PacketSource* source) { ports_.set_source(source); }
  void set_source_ready(PortId port, bool ready) { ports_.set_source_ready(port, ready); }
  void set_departure_hook(PortId port) { ports_.set_departure_hook(port); }
  PacketArena& packets() { return ports_.packets(); }
  const PacketArena& packets() const { return ports_.packets(); }
  void enqueue(PortId port, std::uint32_t packet) { ports_.enqueue(port, packet); }
  void transmit(PortId port, std::uint32_t packet) { ports_.transmit(port, packet); }
  void wake(PortId port, std::uint64_t next) { ports_.wake(port, next); }
  // A port of the same set of atoms does it; see PortArbiter.
  void wake_by(PortId by, PortId port, std::uint64_t next) { ports_.wake(port, next, ports_.origin(by)); }
  Origin& origin(PortId port) { return ports_.origin(port); }
  SwitchFans& fans() { return ports_.fans(); }
  std::uint64_t held_back() const { return ports_.held_back(); }
  Time held_time(PortId port, std::uint32_t priority) const { return ports_.held_time(port, priority); }

  // A congestion notification is about to leave by this port, alone or in an ACK.
  void count_cnp(PortId port) { ++state_.tallies[port].cnps; }
  Time serialisation(Bytes wire, BitRate rate) const { return state_.serialisation(wire, rate); }
  // The NIC's own choice among its classes, by the switches' scheduler: `ready`, bit per class, of which at
  // least one is not paused; `head(c)`: bytes of the packet that class c would send.
  template <class Head>
  std::uint32_t select_class(PortId port, std::uint32_t ready, Head head) {
    return state_.arbiter.select_class(port, ready, head);
  }
  void class_emptied(PortId port, std::uint32_t traffic_class) {
    state_.arbiter.emptied(port, traffic_class, 0);
  }
  // Bit per data class that must not be sent; hosts send in the first virtual channel.
  std::uint32_t paused_classes(PortId port) const {
    return static_cast<std::uint32_t>(state_.ports[port].paused) >> kDataPriority;
  }
  // The priority that congestion notifications from this port travel in: with credits there is none without
  // flow control.
  std::uint8_t cnp_priority(PortId port) const {
    return state_.rules_at(port).credits() ? kDataPriority : kCnpPriority;
  }

  // For the fabric as a whole, between events: see BackPressure.
  void abandon(PortId port) { back_pressure_.abandon(port); }
  void come_up(PortId port) { back_pressure_.come_up(port); }
  // As of PortArbiter.
  void darken(PortId port) { ports_.darken(port); }
  void light(PortId port) { ports_.light(port); }
  void reroute(PortId port) { ports_.reroute(port); }

  static std::uint64_t digest(std::uint64_t before, const Event& event) {
    return event_digest(before, event);
  }

 private:
  void on_arrival(const Event& event);
  void on_departure(const Event& event);

  FabricState& state_;
  PortArbiter ports_;
  RemotePacketEvents remote_event_;
  BackPressure back_pressure_;
};

}  // namespace netsim
