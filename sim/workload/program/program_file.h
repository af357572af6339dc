// Program files (.pb): the only place that knows protobuf.
#pragma once

#include <string>
#include <string_view>

#include "sim/workload/program/program.h"

namespace netsim {

// True if these bytes start as a workload file does.
bool looks_like_program(std::string_view bytes);

// InputError, with `file` and the path inside the message, for empty, truncated or foreign data, a newer
// schema, unknown fields and enum values, and indices of names, works, tables and groups that do not exist.
// What needs the unrolled program is checked by RoleProgramSource.
Program parse_program(std::string_view bytes, const std::string& file);

// The same bytes for equal programs, on every machine.
std::string serialize_program(const Program& program);

}  // namespace netsim
