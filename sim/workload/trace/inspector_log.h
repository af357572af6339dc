// InspectorLog: the records of NCCL's inspector, a profiler plugin that writes a line of JSON for each
// communication of a process. The form is that of plugins/profiler/inspector/inspector_json.cc in
// github.com/NVIDIA/nccl.
//
// The inspector writes several communicators of a process into one file. It leaves out messages below 8 KiB
// and operations that the GPU did not time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/collective_kind.h"
#include "sim/core/input_set.h"
#include "sim/core/units.h"

namespace netsim {

struct InspectorRecord {
  enum class Kind : std::uint8_t { collective, send, receive };
  Kind kind = Kind::collective;
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::uint32_t communicator = 0;  // index in InspectorLog::communicators
  std::uint32_t process = 0;       // index in InspectorLog::processes
  std::uint32_t rank = 0;          // in the communicator
  std::uint32_t peer = 0;          // of a message: the rank at the other end, in the communicator
  std::int64_t number = 0;         // coll_sn: counts the calls of a function in the communicator
  Bytes bytes = 0;                 // as workload.proto counts them
  // Microseconds of the process's clock. The end of a record without event_trace_ts is that of its dump.
  std::int64_t start = 0, end = 0;
  bool timed = false;  // whether it has event_trace_ts
  std::uint32_t file = 0;
  int line = 0;
};

struct InspectorLog {
  struct Communicator {
    std::string id;    // "0x7f8c496ae9f661"
    std::string name;  // "" for none
    std::uint32_t ranks = 0;
  };
  using Process = std::pair<std::string, std::int64_t>;  // host and pid

  std::vector<std::string> files;
  std::vector<Communicator> communicators;
  std::vector<Process> processes;
  std::vector<InspectorRecord> records;  // by process and communicator in the order of their ends
  std::uint64_t ignored = 0;             // lines without a communication
  std::uint64_t left_out = 0;            // communications without a size
  std::uint64_t dropped = 0;             // communications that the inspector did not write
  std::uint64_t cut = 0;                 // last lines of files that were not written to their end
};

// Reads all files. Throws InputError with the place for a line that is no record, and for communicators of
// more than `most_ranks` ranks.
InspectorLog read_inspector(const InputSet& input, std::uint32_t most_ranks);

}  // namespace netsim
