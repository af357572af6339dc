// Reads YAML text into a tree of values with their places (config.h has the rules).
#pragma once

#include <string>

#include "sim/core/config.h"

namespace netsim {

// Returns the tree of a text. `name` stands for the text in places, and `base` is the dotted path of the
// root. Lines and columns are kept only if the text is a file. Throws a ConfigError for invalid YAML.
ConfigNode load_yaml(const std::string& text, const std::string& name, const std::string& base, bool is_file);

}  // namespace netsim
