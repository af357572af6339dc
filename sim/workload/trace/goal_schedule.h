// GoalSchedule: a schedule in GOAL, the notation of LogGOPSim and ATLAHS, as text or as txt2bin's binary
// form. Both forms of one schedule give the same value, except for the lines.
//
// The text is:
//
//   num_ranks 2
//   rank 0 {
//     a: calc 100 cpu 1
//     b: send 8b to 1 tag 3 cpu 0 nic 0
//     b requires a
//   }
//   rank 1 { ...
//
// Statements are one per line; /* */ and // are comments. A `recv` may have -1 as its source and as its tag.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/input_set.h"

namespace netsim {

inline constexpr std::uint32_t kAnyGoal = UINT32_MAX;  // a source or tag of -1

struct GoalOp {
  enum class Kind : std::uint8_t { send = 1, receive = 2, calc = 3 };  // as in the binary form
  Kind kind = Kind::calc;
  std::uint8_t cpu = 0, nic = 0;
  std::uint32_t peer = 0;  // kAnyGoal: any
  std::uint32_t tag = 0;   // kAnyGoal: any
  std::uint32_t line = 0;  // 0: of the binary form
  std::int64_t size = 0;   // bytes, or nanoseconds of a calc
};

struct GoalRank {
  using Edge = std::pair<std::uint32_t, std::uint32_t>;
  std::vector<GoalOp> ops;
  // The first operation of each edge waits for the second one's end, or for its start.
  std::vector<Edge> ends, starts;
};

struct GoalSchedule {
  std::vector<GoalRank> ranks;
};

// Throw InputError with the line and column, or with the offset.
GoalSchedule parse_goal_text(const InputSet::File& file);
GoalSchedule parse_goal_binary(const InputSet::File& file);

// Return the schedule in each form. In the text, operation i of a rank has the label l<i>. The binary
// form is that of txt2bin.
std::string write_goal_text(const GoalSchedule& schedule);
std::string write_goal_binary(const GoalSchedule& schedule);

// Returns how messages name an operation: "line 7", or "node 6 of rank 0".
std::string goal_label(const GoalOp& op, std::size_t rank, std::size_t index);

}  // namespace netsim
