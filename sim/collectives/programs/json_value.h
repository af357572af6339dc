// The types of JSON values, and the messages for wrong ones. The readers of SCCL's and TE-CCL's schedules use
// them; YAML's parser reads the files.
#pragma once

#include <string>

#include "sim/core/config.h"

namespace netsim {

// Returns whether the value is a number, true or false. A quoted value is a text in JSON, whatever it
// contains.
bool is_plain(const ConfigNode& node);

// Returns "null", "a value", "a list" or "an object".
const char* name_of(ConfigNode::Kind kind);

// Throws ConfigError at the node's place: "'x' was given; allowed: a text", "an empty list was given; ...".
[[noreturn]] void refuse(const ConfigNode& node, const std::string& allowed);

}  // namespace netsim
