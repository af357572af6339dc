// KinetoTrace: what one file of PyTorch's profiler (Kineto, Chrome's JSON) says of one rank, as far as a
// replay needs it. The form is that of libkineto/src/output_json.cpp in github.com/pytorch/kineto, and the
// names of a call of NCCL are those of torch/csrc/profiler/util.cpp.
//
// The file is read in pieces. Events of Python, of operators without communication and of annotations are
// counted only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/input_set.h"
#include "sim/core/units.h"
#include "sim/workload/trace/kineto_shape.h"
#include "sim/workload/trace/trace_blocks.h"

namespace netsim {

inline constexpr std::uint32_t kNoKineto = UINT32_MAX;    // no name, no call
inline constexpr std::int64_t kNoKinetoTime = INT64_MIN;  // a launch that the file does not have

// KinetoCall: a call of a communication library, as PyTorch recorded it.
struct KinetoCall {
  std::string name;                  // "allreduce", "_allgather_base", "wait"
  std::string group;                 // "Process Group Name"
  std::string description;           // "Process Group Description"
  std::string type;                  // "BFloat16"
  std::vector<RankId> listed_ranks;  // "Process Group Ranks"; empty if the list is cut
  // Elements of the buffers, ranks, and the root; -1 where the file does not have them.
  std::int64_t in_elements = -1, out_elements = -1, group_size = -1;
  std::int64_t source = -1, destination = -1, root = -1;
  // "In split size" and "Out split size" of an all-to-all.
  SplitSizes in_parts = std::vector<std::int64_t>(), out_parts = std::vector<std::int64_t>();
  std::shared_ptr<const TraceTokens> tokens = {};  // of a dispatch or a combine of netsim
};

// KinetoStream: a CUDA stream of a device.
using KinetoStream = std::pair<std::int64_t, std::int64_t>;

// KinetoOp: an operation of the GPU. Times are nanoseconds of the rank's clock.
struct KinetoOp {
  enum class Kind : std::uint8_t { kernel, copy, fill };
  Kind kind = Kind::kernel;
  std::uint32_t name = 0;          // index in KinetoTrace::names
  std::uint32_t call = kNoKineto;  // index in KinetoTrace::calls
  std::uint32_t calls = 1;         // calls from that on that one kernel runs (ncclGroupEnd)
  std::int64_t start = 0, duration = 0;
  // The time of a computation that nothing slows down, in ps, in a trace of netsim; -1: unknown.
  Time work = -1;
  Bytes bytes = 0;                      // of a copy
  std::int64_t launch = kNoKinetoTime;  // begin of the call that launched it
  std::uint64_t correlation = 0;        // of the call that launched it
  std::uint64_t operation = 0;          // External id: the operator on the CPU
  KinetoStream stream;
  std::int64_t end() const { return start + duration; }
};

// KinetoHostCall: a call of the CUDA or HIP runtime.
struct KinetoHostCall {
  enum class Kind : std::uint8_t { launch, copy, record_event, wait_event, synchronize, synchronize_device };
  Kind kind = Kind::launch;
  std::int64_t begin = 0, end = 0;
  std::uint64_t correlation = 0;
  std::int64_t thread = 0;
};

// KinetoSync: a record of cuda_sync, which says what a wait of a stream, or of the CPU, waits for.
struct KinetoSync {
  std::uint64_t correlation = 0;  // of the runtime's call
  bool of_stream = false;         // whether a stream waits, not the CPU
  std::int64_t begin = 0;
  KinetoStream stream;                   // the stream that waits, or that the CPU waits for
  std::int64_t waited_stream = -1;       // stream of the event
  std::int64_t record_correlation = -1;  // of the call that recorded the event; -1: not seen
};

// KinetoOperation: a call of the communication library on the CPU.
struct KinetoOperation {
  std::int64_t begin = 0, end = 0;
  std::uint64_t id = 0;  // External id
  std::int64_t thread = 0;
  std::uint32_t call = 0;  // index in KinetoTrace::calls
};

struct KinetoTrace {
  struct Group {
    std::string name;
    std::string description;  // "mesh_tp"
    std::vector<RankId> ranks;
  };
  std::string path;
  std::int64_t rank = -1, world = -1;  // -1: the file does not say
  std::int64_t base = 0;               // baseTimeNanoseconds, from which times count
  bool is_simulated = false;           // netsim wrote the file, so all ranks have one clock
  bool has_all_waits = false;          // netsim wrote all waits between streams
  std::vector<Group> groups;           // of this rank
  std::vector<std::string> names;      // of operations of the GPU
  std::vector<KinetoOp> ops;           // by launch; those of a run of netsim by begin
  std::vector<KinetoCall> calls;
  std::vector<KinetoHostCall> host_calls;   // by begin
  std::vector<KinetoSync> syncs;            // by begin
  std::vector<KinetoOperation> operations;  // by begin
  // By External id: operators with shapes, if they were asked for. Never iterated.
  std::unordered_map<std::uint64_t, KinetoShape> shapes;
  std::uint64_t ignored = 0;   // other complete events
  std::uint64_t negative = 0;  // events with a negative duration, which is taken as 0
};

// Reads a file, with the shapes of operators if `with_shapes`. Throws InputError with the line for text that
// is no JSON, and for events without times.
KinetoTrace read_kineto(const InputSet::File& file, bool with_shapes = false);

}  // namespace netsim
