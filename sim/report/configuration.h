// The configuration as a whole: which sections there are and what may stand in them, for --list, --describe,
// --schema,
// --print-config and the manifest. The sections themselves are read by the rooms that own them.
#pragma once

#include <cstddef>
#include <string>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/core/text.h"
#include "sim/core/units.h"
#include "sim/topology/topology.h"

namespace netsim {

// `network: ideal` or `network: {kind: ideal, delay: 1 us}`; `network: {kind: packet, ...}` is
// PacketNetwork's.
struct IdealParameters {
  Time delay = 0;
};
const Parameters<IdealParameters>& ideal_parameters();

// Every section of the file, one entry each.
const ParameterTable& configuration_table();
// ConfigError for a section that does not exist (with the nearest name).
void check_sections(const ConfigNode& root);
// "packet" or "ideal"; ConfigError for anything else.
std::string network_kind(const ConfigNode& root);

// The model of the GPU that all hosts name; "" where they differ, and each has its own.
std::string common_gpu_model(const Cluster& cluster);

// What the configuration holds at a dotted path ("transport.congestion_control"): the name of a component,
// the text of another scalar, also where it is a default; "" for lists, maps and what does not exist.
std::string configured(const ConfigNode& root, const std::string& path);
// The same in a packet fabric: `section` is "network" or "transport", in which `path` ("mtu") stands for all
// fabrics, and under `fabrics` for one.
std::string configured_in(const ConfigNode& root, const std::string& fabric, const std::string& section,
                          const std::string& path);

// The configuration with all defaults filled in, as YAML; a comment behind every value says where it comes
// from. Only for a configuration that is known to be good; `cluster`: what was built of it, which some
// defaults depend on.
std::string resolved_configuration(const ConfigNode& root, const Cluster& cluster);

// The JSON schema of the file, for editors.
std::string configuration_schema();

// Components by kind, or those of one kind. ConfigError for an unknown kind.
std::string list_components(const std::string& kind, std::size_t width = kDefaultWidth);
// Text about whatever --list shows or a configuration may hold: a section or key by its path
// ("transport.mtu") or the end of it ("mtu"), a component ("dcqcn", "congestion_control.dcqcn") or a
// parameter of it ("dcqcn.alpha_timer"), a kind. All that are called so, if there are several. ConfigError if
// there is none.
std::string describe_subject(const std::string& name, std::size_t width = kDefaultWidth);

}  // namespace netsim
