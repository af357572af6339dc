// Schema: the JSON Schema (draft 2020-12) of a configuration file, so that editors complete and check what
// `netsim` would accept. It is made from the same parameter tables that parse the file.
//
// Values with units are strings with a pattern; ranges are in the schema where JSON can say them (integers,
// reals) and in the description otherwise. A component is a bare NAME or a map whose `kind` selects its
// parameters.
#pragma once

#include <string>

#include "sim/core/parameters.h"
#include "sim/core/registry.h"

namespace netsim {

// The schema of a file whose top-level keys are `top_level`. Components of each kind come from `catalogue`.
// Deterministic text, indented by two blanks, ending with a line break.
std::string json_schema(const ParameterTable& top_level, const Catalogue& catalogue);

}  // namespace netsim
