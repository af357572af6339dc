// How large buffers are: those of switches with their headroom, and the credits of links. Made once, before
// the first packet.
#pragma once

#include "sim/core/config.h"
#include "sim/network/fabric_state.h"

namespace netsim {

// `node`: the section `network.switch`, for messages. `largest_packet`: payload and headers of the largest
// packet that the transport makes. ConfigError for what does not fit together.

// Which classes are lossless.
void build_classes(FabricState& state, const ConfigNode& node);
// Of switches, when the classes are known.
void build_buffers(FabricState& state, Bytes largest_packet, const ConfigNode& node);
// Of links into switches, where the network works so, and of links that bring their own (NVLink).
void build_credits(FabricState& state, Bytes largest_packet, const ConfigNode& node);
// PFC headroom of the link into `port ^ 1`'s node.
Bytes computed_headroom(const FabricState& state, PortId port, Bytes largest_packet);

}  // namespace netsim
