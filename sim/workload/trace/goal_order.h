// GoalOrder: one execution of a GOAL schedule in which messages take no time. It decides what GOAL leaves to
// the run: which send a receive with a wildcard takes, and the order of the operations of one cpu.
//
// The calcs of a cpu run one after the other, the one that could begin first comes first. A send ends when it
// begins, as an eager send of LogGOPSim. A receive takes the first message that arrived and fits, and a
// message goes to the first receive that fits and was reached.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload/trace/goal_schedule.h"

namespace netsim {

struct GoalMatch {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t peer = kNone;      // of a message: the rank at the other end
  std::uint32_t index = 0;         // of a message: the operation at the other end
  std::uint32_t number = 0;        // of a message: number among those with its sender and receiver
  std::uint32_t previous = kNone;  // of a calc: the one before it on its cpu
  std::uint32_t turn = 0;          // operations of all ranks that began before, in this execution
};

// Returns what was decided for each operation, by rank. Throws InputError for operations that wait for each
// other, and for messages with one end; `file` stands for the schedule.
std::vector<std::vector<GoalMatch>> order_goal(const GoalSchedule& schedule, const std::string& file);

}  // namespace netsim
