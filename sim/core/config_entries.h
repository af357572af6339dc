// Readings of a ConfigNode's entries that several components need, beside those of parameters.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/config.h"

namespace netsim {

// The entry `key` where the user wrote it, else the node itself, be it a map or not: the place of an error
// about it.
const ConfigNode& entry_or_self(const ConfigNode& node, const char* key);

// A list of `least` to `most` integers, each from 1 to `largest`. ConfigError at the list or at the item;
// `what`: of them, in words ("numbers").
std::vector<std::int64_t> read_sizes(const ConfigNode& list, const char* what, std::size_t least,
                                     std::size_t most, std::int64_t largest);

}  // namespace netsim
