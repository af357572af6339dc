// Readings of a ConfigNode's entries that several components need, in addition to those of parameters.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/config.h"

namespace netsim {

// Returns the entry `key` if the user wrote it, otherwise the node itself, whether or not it is a map. It is
// the place of an error about the entry.
const ConfigNode& entry_or_self(const ConfigNode& node, const char* key);

// Reads a list of `least` to `most` integers, each from 1 to `largest`. Throws ConfigError at the list or at
// the item; `what` names the integers in messages ("numbers").
std::vector<std::int64_t> read_sizes(const ConfigNode& list, const char* what, std::size_t least,
                                     std::size_t most, std::int64_t largest);

}  // namespace netsim
