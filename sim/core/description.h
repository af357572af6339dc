// Descriptions of components and parameters for --describe, in lines of a given width.
#pragma once

#include <cstddef>
#include <string>

#include "sim/core/parameters.h"
#include "sim/core/registry.h"

namespace netsim {

// Returns a title, its description, and the parameters; parameters of sections have dotted names. The
// parameters are a table if the lines are wide enough, otherwise a paragraph each. Nothing is omitted.
std::string describe(const std::string& title, const std::string& doc, const ParameterTable& parameters,
                     std::size_t width);
std::string describe(const ComponentInfo& component, std::size_t width);
// Returns the parameters alone.
std::string describe_parameters(const ParameterTable& table, std::size_t width);

}  // namespace netsim
