// Program files (.pb). Only the implementation knows protobuf.
#pragma once

#include <string>
#include <string_view>

#include "sim/workload/program/program.h"

namespace netsim {

// Name of the workload_reader that reads program files.
inline constexpr const char* kProgramReader = "netsim_program";

// Returns whether the bytes begin as a workload file does.
bool looks_like_program(std::string_view bytes);

// Parses a program. Throws InputError, with `file` and the path inside the message, for empty, truncated or
// foreign data, a newer schema, unknown fields and enum values. It also throws for indices of names, works,
// tables and groups that do not exist. RoleProgramSource checks what needs the unrolled program.
Program parse_program(std::string_view bytes, const std::string& file);

// Returns the bytes of a program. They are the same for equal programs, on every machine.
std::string serialize_program(const Program& program);

}  // namespace netsim
