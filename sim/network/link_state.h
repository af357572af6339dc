// LinkState: the links of a shard's ports, with their transmission time, delay and losses. LinkFaults
// (link_faults.h) changes them between events by the fault schedule.
#pragma once

#include "sim/network/fabric_state.h"
#include "sim/network/packet.h"

namespace netsim {

class LinkState {
 public:
  explicit LinkState(FabricState& state) : state_(state), links_(state.links.data()) {}
  Time serialisation(PortId port, Bytes wire) const { return state_.serialisation(wire, links_[port].rate); }
  BitRate rate(PortId port) const { return links_[port].rate; }
  Time delay(PortId port) const { return links_[port].delay; }
  Time header_time(PortId port, Bytes bytes) const { return state_.header_time(port, bytes); }
  // Returns whether a packet whose transmission begins now is lost, and counts it if so. The link must be
  // part of the fault schedule or a circuit that changes without draining. `wire` is the packet's bytes on
  // the wire.
  //
  // The schedule is known in advance. So a packet that would still be on the link when it goes down, before
  // `arrival`, is lost already here.
  bool loses(PortId port, const Packet& packet, std::int64_t wire, Time arrival);
  // Returns whether the link is down, or will be before the packet has arrived.
  bool is_cut(PortId port, const Packet& packet, Time arrival) const;

 private:
  FabricState& state_;
  fabric::Link* links_;
};

// Sets the link's rate from now on. Bytes sent before keep counting at their former rate. Called between
// events.
void set_rate(FabricState& state, PortId port, BitRate rate);
// Computes the delay of packets from `port` to the far end, and whether that end forwards them after their
// header. Called between events, again when the rate of this link or of a link of the far end's node changes.
void set_passage(FabricState& state, PortId port);
// Returns the port's total time of transmission up to the end of its last one. Includes transmissions that
// the link did not carry.
Time busy_time(const FabricState& state, PortId port);

}  // namespace netsim
