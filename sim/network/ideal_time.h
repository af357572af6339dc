// The time that a message takes alone in the network.
#pragma once

#include <cstdint>
#include <span>

#include "sim/network/fabric_state.h"

namespace netsim {

// The packets of a message, in bytes as buffers count them. The first and the last of the `count` > 0 packets
// may differ from the others.
struct PacketTrain {
  std::uint64_t count;
  Bytes first, full, last;
  bool operator==(const PacketTrain&) const = default;
};

// Returns the time of a packet on the wire of the port's link, at the highest rate that the link has during
// the run.
Time wire_time(const FabricState& state, PortId port, Bytes bytes);
// Returns the time from the packet's start on the port's link until the far end may pass it on; `on_wire`:
// its wire_time(). Where the fault schedule changes rates it is the least of all rates.
Time passage_time(const FabricState& state, PortId port, Bytes bytes, Time on_wire);

// From handing the first of the message's packets to the idle first port of `path` until the last has arrived
// behind the last port. `waits`, if it is not empty: by port of the path, how long the last packet waits
// there for those before it.
Time ideal_time(const FabricState& state, std::span<const PortId> path, const PacketTrain& train,
                std::span<Time> waits = {});

}  // namespace netsim
