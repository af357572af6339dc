// FabricShard: the ports, links and switches of one logical process; fabric.h describes what they do. It
// joins the objects that do the work and is their interface for hosts:
//
//   PortArbiter            queues, departures and transmissions; owns the packets and the three below
//     PacketForwarding     next hops of packets
//     SwitchBuffers        admission of packets to switch buffers
//     LinkState            transmission time and loss on links
//   BackPressure           PFC pauses and credits between the two ends of a link
//   RemotePacketEvents     packets to and from other logical processes
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

  // These forward to PortArbiter.
  void set_source(PacketSource* source) { ports_.set_source(source); }
  void set_source_ready(PortId port, bool ready) { ports_.set_source_ready(port, ready); }
  void set_departure_hook(PortId port) { ports_.set_departure_hook(port); }
  PacketArena& packets() { return ports_.packets(); }
  const PacketArena& packets() const { return ports_.packets(); }
  void enqueue(PortId port, std::uint32_t packet) { ports_.enqueue(port, packet); }
  void transmit(PortId port, std::uint32_t packet) { ports_.transmit(port, packet); }
  void wake(PortId port, std::uint64_t next) { ports_.wake(port, next); }
  // Like wake(), but the event's key comes from `by`, a port of the same logical process; see PortArbiter.
  void wake_by(PortId by, PortId port, std::uint64_t next) { ports_.wake(port, next, ports_.origin(by)); }
  Origin& origin(PortId port) { return ports_.origin(port); }
  SwitchAggregations& aggregations() { return ports_.aggregations(); }
  std::uint64_t held_back() const { return ports_.held_back(); }
  Time held_time(PortId port, std::uint32_t priority) const { return ports_.held_time(port, priority); }

  // Called when a congestion notification is about to leave by this port, alone or in an ACK.
  void count_cnp(PortId port) { ++state_.tallies[port].cnps; }
  Time serialisation(Bytes wire, BitRate rate) const { return state_.serialisation(wire, rate); }
  // Returns the class that the NIC serves next, chosen by the switches' scheduler. `ready` has a bit per
  // class, of which at least one is not paused. `head(c)` returns the bytes of the packet that class c would
  // send.
  template <class Head>
  std::uint32_t select_class(PortId port, std::uint32_t ready, Head head) {
    return state_.arbiter.select_class(port, ready, head);
  }
  void class_emptied(PortId port, std::uint32_t traffic_class) {
    state_.arbiter.emptied(port, traffic_class, 0);
  }
  // Returns a bit per data class that must not be sent. Hosts send in virtual channel 0.
  std::uint32_t paused_classes(PortId port) const {
    return static_cast<std::uint32_t>(state_.ports[port].paused) >> kDataPriority;
  }
  // Returns the priority of congestion notifications from this port. With credits every priority has flow
  // control, so they use the first data priority.
  std::uint8_t cnp_priority(PortId port) const {
    return state_.rules_at(port).credits() ? kDataPriority : kCnpPriority;
  }

  // Called by the fabric between events; see BackPressure.
  void abandon(PortId port) { back_pressure_.abandon(port); }
  void come_up(PortId port) { back_pressure_.come_up(port); }
  // These forward to PortArbiter.
  void take_circuit_down(PortId port) { ports_.take_circuit_down(port); }
  void bring_circuit_up(PortId port) { ports_.bring_circuit_up(port); }
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
