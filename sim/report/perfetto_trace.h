// PerfettoTrace: writes a trace in Perfetto's native format, packet by packet, for ui.perfetto.dev and
// trace_processor. A file is a repeated field 1 with a TracePacket each.
//
// The field numbers in perfetto_trace.cpp are those of protos/perfetto/trace in github.com/google/perfetto
// (trace_packet.proto, track_event/*.proto, interned_data/interned_data.proto).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "sim/core/output.h"
#include "sim/core/protobuf_writer.h"
#include "sim/core/units.h"

namespace netsim {

class PerfettoTrace {
 public:
  // The uuid of a track; 0 for none.
  using Track = std::uint64_t;

  // Annotation: a value that is shown with a slice. Names are interned, so there should be few.
  struct Annotation {
    const char* name;
    std::variant<std::int64_t, std::string> value;
  };

  // Slice: an interval of time on a track. Slices of one track must not overlap.
  struct Slice {
    Track track = 0;
    std::string_view name;
    const char* category = "";
    Time start = 0, end = 0;  // written in whole nanoseconds, rounded down
    // Ids of the arrow that leaves or passes the beginning, and of the one that ends at the end; 0: none.
    std::uint64_t flow_at_begin = 0, flow_to_end = 0;
    std::vector<Annotation> annotations = {};
  };

  // `file` must outlive the trace.
  explicit PerfettoTrace(OutputFile& file) : file_(file) {}

  // These add a track and return it. Tracks of one parent are shown by `order`.
  Track add_process(std::uint32_t pid, std::string_view name);
  Track add_track(Track parent, std::string_view name, std::uint32_t order);
  enum class Unit : std::uint8_t { bytes, percent };
  Track add_counter(Track parent, std::string_view name, Unit unit);

  void add(const Slice& slice);
  // Adds the value of a counter from `time` on.
  void count(Track counter, Time time, double value);

 private:
  // Interned: the texts of one index of InternedData. An id is never given to another text.
  struct Interned {
    std::uint32_t field;  // in InternedData
    std::unordered_map<std::string, std::uint64_t> ids = {};
    std::uint64_t last = 0;
  };

  std::uint64_t intern(Interned& index, std::string_view text);
  // Begins a packet. Forgets the interned texts when they are many, which bounds the memory.
  void begin_packet();
  void end_packet();
  void add_descriptor(const ProtobufWriter& descriptor);
  void add_annotation(const Annotation& annotation);
  void write_event(Time time);

  OutputFile& file_;
  Track last_track_ = 0;
  Interned categories_{1}, names_{2}, annotations_{3};
  // Buffers of the present packet.
  ProtobufWriter packet_, event_, interned_, part_;
  bool first_ = true;
};

}  // namespace netsim
