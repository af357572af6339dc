// Configurations of the HPCC family of ns-3 simulators (`KEY value ...` lines for HPCC's third.cc and what
// was made of it), translated into netsim's own, so that an old experiment runs as it is:
//
//   netsim --config mix/config.txt
//
// The translation asks for the model's own framing (`framing: ns3`, `ecn_echo: ack`), takes topology and
// flows from the files that the configuration names, and works out what the tool works out itself: the
// longest round trip and the bandwidth-delay product (windows), the headroom (three times rate x delay of a
// link).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/units.h"

namespace netsim {

// A configuration, and what one of another tool says besides.
struct ConfiguredRun {
  ConfigNode config;
  std::string workload;            // path; "": none is named
  Time until = kNever;             // when the run ends at the latest
  std::vector<std::string> notes;  // what the translation could not keep
};

// What whoever runs it says instead of the file.
struct RunOverrides {
  std::vector<std::string> assignments;  // overlay_config()
  std::string workload;                  // path; "": the file's
};

// True where the first word of the text is one of the tool's keys.
bool is_ns3_config(std::string_view text);

// ConfigError (file:line:column) for keys that do not exist, wrong values, and modes that netsim does not
// have; keys that only name output are taken and not used. Reads the topology file (InputError, IoError).
// What is worked out from topology and flows is worked out from those of the overrides, where they name any;
// the assignments themselves are load_run()'s business.
ConfiguredRun translate_ns3_config(std::string_view text, const std::string& path,
                                   const RunOverrides& overrides = {});

// Reads a configuration in any notation, by content (recognise.h), and lays the assignments over it: netsim's
// own, ns-3's, and a topology alone, on whose fabric everything else has its default. ConfigError for what is
// no configuration.
ConfiguredRun load_run(const std::string& path, const RunOverrides& overrides = {});

}  // namespace netsim
