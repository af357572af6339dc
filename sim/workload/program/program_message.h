// The conversion of programs to the message of workload.proto and back. Only program_file.cpp uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/workload/program/program.h"

namespace netsim {

namespace pb {
class Workload;
}

inline constexpr const char* kProgramMagic = "netsim-workload";
inline constexpr std::uint32_t kProgramSchema = 1;

// Converts a message whose wire format was checked. Throws InputError, with `file` and the path inside the
// message, for values and indices out of range.
Program program_of_message(const pb::Workload& message, const std::string& file);
// Converts a program, with magic and schema.
pb::Workload message_of_program(const Program& program);

// Tables of pairs of an enum of netsim and one of protobuf, for both directions.
template <class Ours>
using EnumTable = std::vector<std::pair<Ours, int>>;
const EnumTable<Kernel::Kind>& kernel_kind_table();
const EnumTable<Precision>& precision_table();
const EnumTable<TaskKind>& task_kind_table();
const EnumTable<Stream>& stream_table();
const EnumTable<CollectiveKind>& collective_table();

// Returns "3 bytes", for messages.
std::string count_of(std::size_t count, const char* what);

}  // namespace netsim
