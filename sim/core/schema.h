// Schema: the JSON Schema (draft 2020-12) of a configuration file, so that editors complete and check the
// content that `netsim` accepts. It is made from the parameter tables that parse the file.
//
// Values with units are strings with a pattern. Ranges of integers and reals are in the schema; other ranges
// are in the description. A component is a bare NAME or a map whose `kind` selects its parameters.
#pragma once

#include <string>
#include <vector>

#include "sim/core/parameters.h"
#include "sim/core/registry.h"

namespace netsim {

// Returns the schema of a file with the keys `top_level`. Components of each kind come from `catalogue`. The
// text is deterministic, indented by two blanks, and ends with a line break.
std::string json_schema(const ParameterTable& top_level, const Catalogue& catalogue);

// DocumentShape: a file that is one of several things. It is a component of `kind` as a map, or it has the
// one key `list`. That key holds a list of maps with the keys `item`, or one map with the keys of one of
// `maps`.
struct DocumentShape {
  std::string title;
  std::string kind;
  std::string list;
  ParameterTable item;
  // A required key of each item: a file, a list of files, or a component of `kind`.
  std::string source;
  std::vector<ParameterTable> maps;
};
// Returns the schema of such a file.
std::string json_schema(const DocumentShape& shape, const Catalogue& catalogue);

}  // namespace netsim
