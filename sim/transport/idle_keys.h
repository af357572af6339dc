// Notes on keys of the sections `network` and `transport` that the user gave but that have no effect. Other
// keys cause this: a PFC threshold without PFC, or a delay of messages that are never sent.
#pragma once

#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/network/fabric.h"
#include "sim/transport/transport_state.h"

namespace netsim {

// Returns the notes on section `network`, whose values are `parameters`. Sections of single fabrics are not
// checked.
std::vector<std::string> idle_network_keys(const ConfigNode& network, const FabricParameters& parameters,
                                           const Cluster& cluster);
// Returns the notes on section `transport`, or on a fabric's section in it. `path` is that section's path,
// and `transport` is the transport made from it.
std::vector<std::string> idle_transport_keys(const ConfigNode& section, const std::string& path,
                                             const FabricTransport& transport, const Cluster& cluster);

}  // namespace netsim
