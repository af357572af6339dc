// The report of --dry-run on a cluster's structure.
#pragma once

#include <cstddef>
#include <string>

#include "sim/core/text.h"
#include "sim/topology/structure.h"

namespace netsim {

// Returns lines of at most `width` columns.
std::string render_structure(const Structure& structure, std::size_t width = kDefaultWidth);

}  // namespace netsim
