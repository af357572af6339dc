// LinkState: the links of a part's ports: how long a packet is on its way, and whether the link is up. What
// happens to links between events, by the fault plan, is LinkFaults' (link_faults.h).
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
  // Returns whether a packet is lost whose transmission begins now, and counts it if so. The link is one of
  // the fault schedule or a circuit that nobody drains. `wire` is the packet's bytes on the wire.
  // The schedule is known, so a packet that would be on the link when it goes down, before `arrival`, is
  // already lost here.
  bool loses(PortId port, const Packet& packet, std::int64_t wire, Time arrival);

 private:
  FabricState& state_;
  fabric::Link* links_;
};

// Between events. The link's rate from now on; what has been sent counts at the rates it was sent at.
void set_rate(FabricState& state, PortId port, BitRate rate);
// How long after its transmission's end, start or header a packet from `port` may go on at the far end: anew
// when the rate of this link or of another one into or out of that node has changed.
void set_passage(FabricState& state, PortId port);
// Returns the time that the port has been transmitting, also what its link did not carry, up to the end of
// its last transmission.
Time busy_time(const FabricState& state, PortId port);

}  // namespace netsim
