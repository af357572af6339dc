// Virtual channels for any graph: a packet's channel is the number of links between switches behind it. It
// rises with every hop, so no cycle of packets can wait for each other. The rule is Gunther's (Prevention of
// Deadlocks in Packet-Switched Data Transport Systems, IEEE Transactions on Communications, 1981).
//
// It takes as many channels as the longest route has links between switches. With fewer channels, all later
// hops share the last one, and a search must show whether this is free of deadlock.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/topology/routes.h"

namespace netsim {

// Returns `routes` in `channels` virtual channels; `routes` itself for one channel.
std::unique_ptr<Routes> hop_ordered_routes(const Graph& graph, std::unique_ptr<Routes> routes,
                                           std::uint32_t channels);

}  // namespace netsim
