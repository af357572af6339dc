// What --dry-run says about a cluster's shape.
#pragma once

#include <cstddef>
#include <string>

#include "sim/core/text.h"
#include "sim/topology/structure.h"

namespace netsim {

// Lines of at most `width` columns.
std::string render_structure(const Structure& structure, std::size_t width = kDefaultWidth);

}  // namespace netsim
