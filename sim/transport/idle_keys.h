// Notes on keys of the sections `network` and `transport` that the user gave and that change nothing. Other
// keys make them so: a threshold of pauses where nothing pauses, a delay of messages that nobody sends.
#pragma once

#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/network/fabric.h"
#include "sim/transport/transport_state.h"

namespace netsim {

// Returns the notes on section `network`, whose values are `parameters`. Sections of single fabrics are not
// looked at.
std::vector<std::string> idle_network_keys(const ConfigNode& network, const FabricParameters& parameters,
                                           const Cluster& cluster);
// Returns the notes on section `transport`, or on one fabric's section in it. `path` is the section's, and
// `transport` is what it makes.
std::vector<std::string> idle_transport_keys(const ConfigNode& section, const std::string& path,
                                             const FabricTransport& transport, const Cluster& cluster);

}  // namespace netsim
