// Finds which GPUs of a cluster reach each other: scale-up domains and islands.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/topology/topology.h"

namespace netsim {

// Sets Gpu::domain of the GPUs that a scale-up fabric joins. Its ports and switches must be in the graph, and
// no later fabric's. `domain` is the first number that is free; returns the next one.
std::uint32_t find_domains(Cluster& cluster, const ClusterFabric& fabric, std::uint32_t domain);

// Sets island_of_group, and the numbers within islands if there are several. An island's number is that of
// its first fabric; a group without fabrics is an island of its own.
void find_islands(Cluster& cluster);

// Checks that every GPU has a route to every other GPU of its island, within its host or over NICs. `places`
// has the place of each host group in the configuration. Throws a ConfigError there.
void check_gpus_joined(const Cluster& cluster, const std::vector<Place>& places);

}  // namespace netsim
