// Virtual channels for any graph: a packet's channel is the number of switches behind it, so that it rises
// with every hop and no circle of packets can wait for each other (Gunther, Prevention of Deadlocks in
// Packet-Switched Data Transport Systems, IEEE Transactions on Communications, 1981). As many channels as the
// longest way has links between switches; with fewer, all later hops share the last one, and whether that is
// safe has to be looked for.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/topology/routes.h"

namespace netsim {

// `routes` in so many channels; `routes` as they are where there is one.
std::unique_ptr<Routes> hop_ordered_routes(const Graph& graph, std::unique_ptr<Routes> routes,
                                           std::uint32_t channels);

}  // namespace netsim
