#include "sim/report/perfetto_trace.h"

#include "sim/report/timeline.h"

namespace netsim {
namespace {

// trace.proto: Trace.packet
constexpr std::uint32_t kTracePacket = 1;
// trace_packet.proto: TracePacket, and the flags of SequenceFlags
constexpr std::uint32_t kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12,
                        kSequenceFlags = 13, kTrackDescriptor = 60;
constexpr std::uint64_t kStateCleared = 1, kNeedsState = 2;
// track_event/track_event.proto: TrackEvent and its Type
constexpr std::uint32_t kCategoryIid = 3, kDebugAnnotation = 4, kType = 9, kNameIid = 10, kTrackUuid = 11,
                        kDoubleCounterValue = 44, kFlowId = 47, kTerminatingFlowId = 48;
constexpr std::uint64_t kSliceBegin = 1, kSliceEnd = 2, kCounter = 4;
// track_event/debug_annotation.proto: DebugAnnotation
constexpr std::uint32_t kAnnotationNameIid = 1, kAnnotationInteger = 4, kAnnotationText = 6;
// track_event/track_descriptor.proto: TrackDescriptor and its ChildTracksOrdering
constexpr std::uint32_t kUuid = 1, kTrackName = 2, kProcess = 3, kParentUuid = 5, kCounterDescriptor = 8,
                        kChildOrdering = 11, kSiblingOrderRank = 12;
constexpr std::uint64_t kExplicitOrder = 3;
// track_event/process_descriptor.proto: ProcessDescriptor
constexpr std::uint32_t kPid = 1, kProcessName = 6;
// track_event/counter_descriptor.proto: CounterDescriptor and its Unit
constexpr std::uint32_t kUnit = 3, kUnitName = 6;
constexpr std::uint64_t kUnitBytes = 3;
// The entries of all indices of interned_data.proto: EventCategory, EventName, DebugAnnotationName
constexpr std::uint32_t kEntryId = 1, kEntryText = 2;

constexpr std::uint64_t kSequence = 1;       // all packets are of one sequence
constexpr std::size_t kMostInterned = 4096;  // texts of one index that are kept at a time

// Begins the description of a track below another one.
void describe(ProtobufWriter& descriptor, std::uint64_t track, std::string_view name, std::uint64_t parent) {
  descriptor.varint(kUuid, track);
  descriptor.bytes(kTrackName, name);
  descriptor.varint(kParentUuid, parent);
}

}  // namespace

PerfettoTrace::Track PerfettoTrace::add_process(std::uint32_t pid, std::string_view name) {
  ProtobufWriter process, descriptor;
  process.varint(kPid, pid);
  process.bytes(kProcessName, name);
  descriptor.varint(kUuid, ++last_track_);
  descriptor.message(kProcess, process);
  descriptor.varint(kChildOrdering, kExplicitOrder);
  descriptor.varint(kSiblingOrderRank, pid);
  add_descriptor(descriptor);
  return last_track_;
}

PerfettoTrace::Track PerfettoTrace::add_track(Track parent, std::string_view name, std::uint32_t order) {
  ProtobufWriter descriptor;
  describe(descriptor, ++last_track_, name, parent);
  descriptor.varint(kChildOrdering, kExplicitOrder);
  descriptor.varint(kSiblingOrderRank, order);
  add_descriptor(descriptor);
  return last_track_;
}

PerfettoTrace::Track PerfettoTrace::add_counter(Track parent, std::string_view name, Unit unit) {
  ProtobufWriter counter, descriptor;
  unit == Unit::bytes ? counter.varint(kUnit, kUnitBytes) : counter.bytes(kUnitName, "%");
  describe(descriptor, ++last_track_, name, parent);
  descriptor.message(kCounterDescriptor, counter);
  descriptor.varint(kSiblingOrderRank, last_track_);
  add_descriptor(descriptor);
  return last_track_;
}

void PerfettoTrace::add(const Slice& slice) {
  begin_packet();
  event_.varint(kType, kSliceBegin);
  event_.varint(kTrackUuid, slice.track);
  event_.varint(kNameIid, intern(names_, slice.name));
  event_.varint(kCategoryIid, intern(categories_, slice.category));
  for (const Annotation& annotation : slice.annotations) add_annotation(annotation);
  if (slice.flow_at_begin != 0) event_.fixed64(kFlowId, slice.flow_at_begin);
  write_event(slice.start);

  begin_packet();
  event_.varint(kType, kSliceEnd);
  event_.varint(kTrackUuid, slice.track);
  if (slice.flow_to_end != 0) event_.fixed64(kTerminatingFlowId, slice.flow_to_end);
  write_event(slice.end);
}

void PerfettoTrace::count(Track counter, Time time, double value) {
  begin_packet();
  event_.varint(kType, kCounter);
  event_.varint(kTrackUuid, counter);
  event_.real(kDoubleCounterValue, value);
  write_event(time);
}

std::uint64_t PerfettoTrace::intern(Interned& index, std::string_view text) {
  const auto [entry, added] = index.ids.try_emplace(std::string(text), index.last + 1);
  if (!added) return entry->second;
  ++index.last;
  part_.clear();
  part_.varint(kEntryId, index.last);
  part_.bytes(kEntryText, text);
  interned_.message(index.field, part_);
  return index.last;
}

void PerfettoTrace::begin_packet() {
  packet_.clear();
  event_.clear();
  interned_.clear();
  packet_.varint(kSequenceId, kSequence);
  const bool full = names_.ids.size() >= kMostInterned || annotations_.ids.size() >= kMostInterned;
  if (first_ || full) {
    for (Interned* index : {&categories_, &names_, &annotations_}) index->ids.clear();
  }
  packet_.varint(kSequenceFlags, first_ || full ? kStateCleared | kNeedsState : kNeedsState);
  first_ = false;
}

void PerfettoTrace::end_packet() {
  part_.clear();
  part_.message(kTracePacket, packet_);
  file_.write(part_.text());
}

void PerfettoTrace::add_descriptor(const ProtobufWriter& descriptor) {
  begin_packet();
  packet_.message(kTrackDescriptor, descriptor);
  end_packet();
}

void PerfettoTrace::add_annotation(const Annotation& annotation) {
  const std::uint64_t name = intern(annotations_, annotation.name);
  part_.clear();
  part_.varint(kAnnotationNameIid, name);
  if (const auto* number = std::get_if<std::int64_t>(&annotation.value)) {
    part_.varint(kAnnotationInteger, static_cast<std::uint64_t>(*number));
  } else {
    part_.bytes(kAnnotationText, std::get<std::string>(annotation.value));
  }
  event_.message(kDebugAnnotation, part_);
}

void PerfettoTrace::write_event(Time time) {
  packet_.varint(kTimestamp, static_cast<std::uint64_t>(nanoseconds(time)));
  if (!interned_.empty()) packet_.message(kInternedData, interned_);
  packet_.message(kTrackEvent, event_);
  end_packet();
}

}  // namespace netsim
