// Ideal time: the time that a message takes alone in the network.
#pragma once

#include <cstdint>
#include <span>

#include "sim/network/fabric_state.h"

namespace netsim {

// The packets of a message, with sizes in bytes as buffers count them. The first and the last of the `count`
// > 0 packets may differ from the others.
struct PacketTrain {
  std::uint64_t count;
  Bytes first, full, last;
  bool operator==(const PacketTrain&) const = default;
};

// Returns the time of a packet on the wire of the port's link, at the highest rate that the link has during
// the run.
Time wire_time(const FabricState& state, PortId port, Bytes bytes);
// Returns the time from the packet's start on the port's link until the far end may forward it. `on_wire` is
// its wire_time(). If the fault schedule changes rates, it is the least time over all rates.
Time passage_time(const FabricState& state, PortId port, Bytes bytes, Time on_wire);

// Returns the time from handing the first packet to the idle first port of `path` until the last packet has
// arrived behind the last port. If `waits` is not empty, it gets, by port, the time that the last packet
// waits for those before it.
Time ideal_time(const FabricState& state, std::span<const PortId> path, const PacketTrain& train,
                std::span<Time> waits = {});

}  // namespace netsim
