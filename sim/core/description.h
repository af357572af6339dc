// Descriptions of components and parameters for --describe, in lines of a given width.
#pragma once

#include <cstddef>
#include <string>

#include "sim/core/parameters.h"
#include "sim/core/registry.h"

namespace netsim {

// A title, what it is, and the parameters; parameters of sections have dotted names. A table where the lines
// have room for one, otherwise a paragraph for each parameter: nothing is left out.
std::string describe(const std::string& title, const std::string& doc, const ParameterTable& parameters,
                     std::size_t width);
std::string describe(const ComponentInfo& component, std::size_t width);
// The parameters alone.
std::string describe_parameters(const ParameterTable& table, std::size_t width);

}  // namespace netsim
