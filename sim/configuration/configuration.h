// The configuration as a whole: its sections and their allowed content, for --list, --describe, --schema,
// --print-config and the manifest. The folders that own the sections read them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/core/text.h"
#include "sim/core/units.h"
#include "sim/topology/topology.h"

namespace netsim {

// IdealParameters: `network: ideal` or `network: {kind: ideal, delay: 1 us}`. PacketNetwork reads `network:
// {kind: packet, ...}`.
struct IdealParameters {
  Time delay = 0;
};
const Parameters<IdealParameters>& ideal_parameters();

// Returns the table of all sections, one entry each.
const ParameterTable& configuration_table();
// Throws ConfigError for a section that does not exist, with the nearest name.
void check_sections(const ConfigNode& root);
// Returns "packet" or "ideal". Throws ConfigError for anything else.
std::string network_kind(const ConfigNode& root);

// Returns the GPU model that all hosts name, or "" if hosts have different models.
std::string common_gpu_model(const Cluster& cluster);

// Returns the value at a dotted path ("transport.congestion_control"), also if it is a default. That is the
// name of a component or the text of another scalar. Returns "" for lists, maps and paths that do not exist.
std::string configured(const ConfigNode& root, const std::string& path);
// Returns the value that holds in a packet fabric. `section` is "network" or "transport", and `path` is a key
// in it ("mtu"). The section holds for all fabrics; an entry under `fabrics` holds for one.
std::string configured_in(const ConfigNode& root, const std::string& fabric, const std::string& section,
                          const std::string& path);

// Returns the configuration with all defaults filled in, as YAML, with a comment behind every value about its
// origin. `root` must be a valid configuration; `cluster` is built from it, and some defaults depend on it.
std::string resolved_configuration(const ConfigNode& root, const Cluster& cluster);

// Returns the JSON schema of the file, for editors.
std::string configuration_schema();
// Returns the dotted paths of all keys ("transport.mtu"), without those in lists, in the order of the file.
std::vector<std::string> configuration_keys();

// Returns the components by kind, or those of one kind. Throws ConfigError for an unknown kind.
std::string list_components(const std::string& kind, std::size_t width = kDefaultWidth);
// Returns text about everything called `name`. The name is the path of a section or key ("transport.mtu") or
// its end ("mtu"), or a kind. It may also be a component ("dcqcn", "congestion_control.dcqcn") or a parameter
// of one ("dcqcn.alpha_timer"). Throws ConfigError if nothing has that name.
std::string describe_subject(const std::string& name, std::size_t width = kDefaultWidth);

}  // namespace netsim
