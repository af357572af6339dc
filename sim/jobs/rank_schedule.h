// RankSchedule: the communications of one rank that a task scheduler launches. Used within sim/jobs only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "sim/core/units.h"
#include "sim/jobs/launch_decision.h"
#include "sim/jobs/task_scheduling.h"

namespace netsim::source_job {

inline bool contains_slot(const std::vector<std::uint32_t>& slots, std::uint32_t slot) {
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

// Pending: one candidate of the scheduler: a communication, a grouped call, or a bucket of fused collectives.
struct Pending {
  std::vector<std::uint32_t> slots;  // of SetState::active; the first one names the candidate
  bool fused = false;                // the slots are one operation with the sum of their bytes
  std::uint32_t wanted = 1;          // tasks of the bucket or grouped call, with which it is complete
  std::uint32_t arrived = 1;         // those that are ready
  std::uint32_t bucket = 0;          // fused: its bucket; grouped: its queue
  std::uint32_t place = 0;           // fused: its iteration; grouped: its place in the queue
  std::uint64_t order = 0;           // Candidate::order
  Bytes bytes = 0;
  Bytes part = 0;  // size of its parts; `bytes` if it is not cut
  Bytes launched = 0;
  std::uint32_t parts_launched = 0;
  bool last_launched = false;  // the last part was launched before another one
  Time ready = 0;

  // Adds other tasks of the bucket or grouped call.
  void join(const Pending& other) {
    slots.insert(slots.end(), other.slots.begin(), other.slots.end());
    arrived += other.arrived;
    bytes += other.bytes;
    order = std::min(order, other.order);
  }
  // Leaves only the place of a task of a grouped call that is launched without a decision.
  void leave_to_others() {
    slots.clear();
    bytes = 0;
    order = UINT64_MAX;
  }
  bool has(std::uint32_t slot) const { return contains_slot(slots, slot); }
  Bytes left() const { return bytes - launched; }
  Bytes next() const { return left() < part ? left() : part; }
  // Returns the bytes of the last part if it is shorter than the others and not the next one, otherwise 0.
  Bytes last() const { return left() > part && part > 0 && !last_launched ? bytes % part : 0; }
  // Returns the number of the next part.
  std::uint32_t next_number() const { return parts_launched - (last_launched ? 1 : 0); }
  // Notes the launch of the next part, or of the last one.
  void note_launch(bool last_part) {
    launched += last_part ? last() : next();
    last_launched = last_launched || last_part;
    ++parts_launched;
  }
  std::uint32_t parts() const { return static_cast<std::uint32_t>((bytes + part - 1) / part); }
};

// PartInFlight: an operation of the executor that the rank has started.
struct PartInFlight {
  std::uint64_t operation = 0;
  std::vector<std::uint32_t> slots;  // the task, or the tasks of a bucket
  Bytes whole = 0;                   // bytes of the communication or bucket
  Bytes bytes = 0;                   // bytes of the part
  std::uint32_t channels = 0;

  bool has(std::uint32_t slot) const { return contains_slot(slots, slot); }
};

// ArrivedDecision: a decision of another rank, and when it arrived.
struct ArrivedDecision {
  LaunchDecision decision;
  Time arrived = 0;
};

struct RankSchedule {
  std::vector<std::uint32_t> at_once;  // slots of tasks that no scheduler delays
  std::vector<Pending> incomplete;     // buckets and grouped calls of which not all tasks are ready
  std::vector<Pending> held;           // those that the plan holds: by their sequence, or until a task ends
  std::vector<Pending> pending;        // candidates, in program order
  std::vector<PartInFlight> in_flight;
  std::unordered_map<std::uint32_t, std::deque<ArrivedDecision>> decisions;  // by group; only looked up
  std::unordered_map<std::uint32_t, std::uint64_t> turns;  // by sequence: number launched; only looked up
  // By position of a task for which others are held: in how many iterations it has ended; only looked up.
  std::unordered_map<std::uint32_t, std::uint64_t> ended;
  std::vector<std::byte> state;  // RankView::state
  bool part_ends = false;        // the tasks of a part are ending; the scheduler is called afterwards
  Time call_again = kNever;      // time of the earliest call that the scheduler has asked for
  std::map<std::uint32_t, LaunchCounts> counts;  // by Task::name
};

}  // namespace netsim::source_job
