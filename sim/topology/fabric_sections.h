// Sections for single fabrics: `network.fabrics` and `transport.fabrics` of the configuration, {rack: {...},
// storage: {...}}. Each section has the keys of the section for all packet fabrics that may differ between
// fabrics. A key that it omits has the value of that section.
#pragma once

#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/topology/topology.h"

namespace netsim {

// Returns the section of each fabric, by index in Cluster::fabrics; null: there is none. The nodes belong to
// `map`. Throws a ConfigError with the allowed names where a name is not one of the cluster's packet fabrics.
std::vector<const ConfigNode*> fabric_sections(const ConfigNode& map, const Cluster& cluster);

// Throws a ConfigError where `section` has a key that `of_fabric` does not have. A key of `of_all` is common
// to all fabrics; the error then names `path`, the section it belongs to ("network.switch").
void check_fabric_keys(const ConfigNode& section, const ParameterTable& of_all,
                       const ParameterTable& of_fabric, const std::string& path);

}  // namespace netsim
