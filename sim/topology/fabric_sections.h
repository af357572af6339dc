// Sections of single fabrics: `network.fabrics` and `transport.fabrics` of the configuration,
// {rack: {...}, storage: {...}}. Each is laid over the section that all packet fabrics share: it has the same
// keys, as far as they may differ from fabric to fabric, and what it leaves out is as that section says.
#pragma once

#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/topology/topology.h"

namespace netsim {

// What such a map says of each fabric, by number in Cluster::fabrics; null: nothing. The nodes are those of
// the map. ConfigError where a name is none of the cluster's packet fabrics; says which there are.
std::vector<const ConfigNode*> fabric_sections(const ConfigNode& map, const Cluster& cluster);

// ConfigError where `section` has a key that is none of `of_fabric`; one of `of_all` is common to all
// fabrics. `path`: where it stands then ("network.switch").
void check_fabric_keys(const ConfigNode& section, const ParameterTable& of_all,
                       const ParameterTable& of_fabric, const std::string& path);

}  // namespace netsim
