// What a value of a JSON file is, and how a refusal names it: for the schedules of SCCL and TE-CCL, which
// YAML's parser reads.
#pragma once

#include <string>

#include "sim/core/config.h"

namespace netsim {

// A number, true or false: what is in quotes is a text in JSON, whatever it looks like.
bool is_plain(const ConfigNode& node);

// "null", "a value", "a list", "an object".
const char* name_of(ConfigNode::Kind kind);

// ConfigError at its place: "'x' was given; allowed: a text", "an empty list was given; ...".
[[noreturn]] void refuse(const ConfigNode& node, const std::string& allowed);

}  // namespace netsim
