// The time that a message takes alone in the network.
#pragma once

#include <cstdint>
#include <span>

#include "sim/network/fabric_state.h"

namespace netsim {

// From handing the first of the message's packets to the idle first port of `path` until the last has arrived
// behind the last port: `full` packets of `full_bytes` after a first of `first_bytes`, the last of
// `last_bytes` (as buffers count them). `packets` > 0. `waits`, if it is not empty: by port of the path, how
// long the last packet waits there for those before it.
Time ideal_time(const FabricState& state, std::span<const PortId> path, std::uint64_t packets,
                Bytes first_bytes, Bytes full_bytes, Bytes last_bytes, std::span<Time> waits = {});

}  // namespace netsim
