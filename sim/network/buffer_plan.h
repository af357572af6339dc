// How large buffers are: those of switches with their headroom, and the credits of links. Made once, before
// the first packet.
#pragma once

#include "sim/network/fabric_state.h"

namespace netsim {

// All by the rules of the port's or switch's fabric. ConfigError for what does not fit together.

// Which classes are lossless.
void build_classes(FabricState& state);
// Of switches, when the classes are known.
void build_buffers(FabricState& state);
// Of links into switches, where the network works so, and of links that bring their own (NVLink).
void build_credits(FabricState& state);
// PFC headroom of the link into `port ^ 1`'s node.
Bytes computed_headroom(const FabricState& state, PortId port);

}  // namespace netsim
