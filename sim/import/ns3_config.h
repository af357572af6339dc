// Translates configurations of the HPCC family of ns-3 simulators (`KEY value ...` lines for HPCC's third.cc
// and its successors) into netsim's. An old experiment then runs unchanged:
//
//   netsim --config mix/config.txt
//
// The translation selects the tool's framing (`framing: ns3`, `ecn_echo: ack`) and takes topology and flows
// from the files that the configuration names. It computes the values that the tool computes itself. These
// are the longest round trip and bandwidth-delay product (windows), and the headroom (three times rate x
// delay of a link).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/input_set.h"
#include "sim/core/units.h"

namespace netsim {

// ConfiguredRun: a configuration, with the run settings that another tool's configuration contains.
struct ConfiguredRun {
  ConfigNode config;
  InputPaths workload;             // empty: none is named
  Time until = kNever;             // time at which the run ends at the latest
  std::vector<std::string> notes;  // settings that the translation could not keep
};

// RunOverrides: settings that replace those of the file.
struct RunOverrides {
  std::vector<std::string> assignments;  // for overlay_config()
  InputPaths workload;                   // empty: the file's workload
};

// Returns whether the first word of the text is one of the tool's keys.
bool is_ns3_config(std::string_view text);

// Translates a configuration and reads its topology file. Throws ConfigError (file:line:column) for unknown
// keys, wrong values, and modes that netsim does not have; InputError or IoError for the topology file. Keys
// that only name output are accepted and ignored.
//
// Values computed from topology and flows use those of the overrides, if the overrides name any. load_run()
// applies the assignments (sim/configuration/load_run.h).
ConfiguredRun translate_ns3_config(std::string_view text, const std::string& path,
                                   const RunOverrides& overrides = {});

}  // namespace netsim
