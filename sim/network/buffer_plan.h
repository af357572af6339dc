// Sizes of buffers: switch buffers with their PFC headroom, and credit buffers of links. They are computed
// once, before the first packet.
#pragma once

#include "sim/network/fabric_state.h"

namespace netsim {

// All functions follow the rules of the port's or switch's fabric. They throw ConfigError for values that
// contradict each other.

// Determines which classes are lossless.
void build_classes(FabricState& state);
// Sizes the buffers of switches. build_classes() must have run.
void build_buffers(FabricState& state);
// Sizes the credit buffers of links into switches under flow control by credits, and of links that have
// credits of their own (NVLink).
void build_credits(FabricState& state);
// Returns the PFC headroom, in bytes, of the link on which `port` transmits.
Bytes computed_headroom(const FabricState& state, PortId port);

}  // namespace netsim
