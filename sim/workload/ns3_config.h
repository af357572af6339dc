// Configurations of the HPCC family of ns-3 simulators (`KEY value ...` lines for HPCC's third.cc and what was made
// of it), translated into netsim's own, so that an old experiment runs as it is:
//
//   netsim --config mix/config.txt
//
// The translation asks for the model's own framing (`framing: ns3`, `ecn_echo: ack`), takes topology and flows
// from the files that the configuration names, and works out what the tool works out itself: the longest round
// trip and the bandwidth-delay product (windows), the headroom (three times rate x delay of a link).
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

// True where the first word of the text is one of the tool's keys.
bool is_ns3_config(std::string_view text);

// ConfigError (file:line:column) for keys that do not exist, wrong values, and modes that netsim does not have;
// keys that only name output are taken and not used. Reads the topology file (InputError, IoError).
ConfiguredRun translate_ns3_config(std::string_view text, const std::string& path);

// Reads a configuration in either notation, by content.
ConfiguredRun load_run(const std::string& path);

}  // namespace netsim
