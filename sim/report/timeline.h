// The parts that the result sinks of timelines share (sinks/perfetto.cpp, sinks/kineto.cpp,
// sinks/nccl_inspector.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/report/run_records.h"
#include "sim/report/run_view.h"

namespace netsim {

// Returns the time in whole nanoseconds, rounded down. All timelines round each time alone, so equal times
// stay equal and the order of times stays.
constexpr std::int64_t nanoseconds(Time time) { return time / kNanosecond; }

// Lanes: distributes intervals of time over lanes, so that those of one lane do not overlap. A lane becomes
// a track of its own. Tasks of a stream overlap where their order is free.
class Lanes {
 public:
  // Returns the number of the lane of the interval, from 0. It is the lane that ended last among those that
  // ended by `start`, or a new one. In order of end this gives the fewest lanes.
  std::uint32_t take(Time start, Time end);

 private:
  std::set<std::pair<Time, std::uint32_t>> ends_;  // end of the last interval, lane
};

// RecordLimit: counts the records that a file gets, up to OutputParameters::max_rows.
class RecordLimit {
 public:
  // `what` names the records in the note.
  RecordLimit(std::string what, std::int64_t most) : what_(std::move(what)), most_(most) {}
  // Counts a record. Returns false if it is over the limit.
  bool take() { return ++count_ <= most_; }
  // Returns the note on records that are over the limit, or nothing.
  std::vector<std::string> notes(const std::string& file) const;

 private:
  std::string what_;
  std::int64_t most_, count_ = 0;
};

// CollectiveMembers: keeps the tasks of a collective until the communication has ended, which tells how the
// library ran it. The memory is bounded by the collectives in flight.
//
// The record of a communication comes just before the task of its last member. `write(held, choice)` is
// called for each task; `choice` is null where the run ended before the collective.
template <class Held>
class CollectiveMembers {
 public:
  template <class Write>
  void add(JobId job, std::uint64_t communication, Held held, const Write& write) {
    const Key key{job, communication};
    if (ended_ && *ended_ == key) {
      write(held, &choice_);
    } else {
      open_[key].push_back(std::move(held));
    }
  }
  template <class Write>
  void end(const RecordedCommunication& record, const Write& write) {
    ended_ = Key{record.communication.job, record.communication.id};
    choice_ = record.choice;
    const auto open = open_.extract(*ended_);
    if (open.empty()) return;
    for (const Held& held : open.mapped()) write(held, &choice_);
  }
  // Writes the tasks whose collectives did not end.
  template <class Write>
  void finish(const Write& write) {
    for (const auto& [key, members] : open_) {
      for (const Held& held : members) write(held, nullptr);
    }
    open_.clear();
  }

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // job, communication
  std::map<Key, std::vector<Held>> open_;
  std::optional<Key> ended_;  // the communication that ended last
  LibraryChoice choice_;
};

// HostAndPart: the two parts of the name of a node, "host0" and "gpu3" of "host0/gpu3". `part` is empty where
// the node is the host itself.
struct HostAndPart {
  std::string host, part;
};
HostAndPart host_and_part(std::string_view node);
// Returns the name of a GPU's node, or "" where the run does not know its GPUs.
std::string gpu_name(const RunView& run, GpuId gpu);

// Returns the name of a communication of this kind as NCCL's functions have it, "AllReduce". Kinds that NCCL
// composes of messages are "SendRecv".
const char* nccl_function(CollectiveKind kind);
// CallBytes: the bytes that one rank gives to NCCL's call, and those that it gets. One of them is bytes /
// ranks where all ranks have equal parts.
struct CallBytes {
  Bytes in = 0, out = 0;
};
CallBytes call_bytes(CollectiveKind kind, Bytes bytes, std::uint32_t ranks);
// Returns the algorithm in capitals with underscores, as NCCL names it, or "unknown".
std::string nccl_algorithm(const LibraryChoice* choice);
// Returns the protocol as NCCL names it, SIMPLE, LL or LL128, or "unknown".
std::string nccl_protocol(const LibraryChoice* choice);

// NamedNumber: a number with the key that shows it.
struct NamedNumber {
  const char* name;
  std::int64_t value;
};
// Returns what a task works for: its microbatch, chunk and layer, and those of the backward that its step
// computes together with them. It is empty where the workload does not say it.
std::vector<NamedNumber> mark_numbers(const RunView& run, const TaskRecord& record);

// Returns a text as JSON, with its quotes. Bytes that are no UTF-8 are replaced.
std::string json_text(const std::string& text);

}  // namespace netsim
