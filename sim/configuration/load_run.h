// Reads the configuration of a run, whatever notation its file has.
#pragma once

#include <string>

#include "sim/import/ns3_config.h"

namespace netsim {

// Reads a configuration in any notation, by content (recognise.h), and applies the assignments. The notations
// are netsim's own, ns-3's, and a topology alone, with defaults for everything else. Throws ConfigError if
// the file is no configuration.
ConfiguredRun load_run(const std::string& path, const RunOverrides& overrides = {});

}  // namespace netsim
