// PlanSchedule: which rank sends what to which rank and when, for drawings of a plan. The unit of time is one
// message: each message travels for one unit, and nothing else takes time.
//
// A step begins when the step before it in its thread block has ended and its message
// has arrived. The step that it waits for must have ended too. A step that sends also needs a free slot. So a
// thread block sends one message at a time, and a chain of n dependent messages takes n units.
//
// The steps are those of the proof's execution. The schedule of a wrong plan ends where that execution stops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/plan.h"

namespace netsim {

// ScheduledStep: a step of a thread block with the time at which it begins.
struct ScheduledStep {
  std::uint32_t time = 0;
  std::uint32_t rank = 0, block = 0, index = 0;
  Step step;
};

// ScheduledMessage: a message that travels from `sender.time` to the next unit. A multicast is one message
// per member. `receiver.step` is the step that receives the message; `receiver.rank` is kNoIndex where the
// schedule ends before that.
struct ScheduledMessage {
  ScheduledStep sender, receiver;
  bool added = false;  // added to other data: by switches on the way, or by the receiver
};

struct PlanSchedule {
  std::string algorithm;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t ranks = 0, chunks = 0;
  bool in_place = false;
  std::uint32_t times = 0;                 // arrival time of the last message
  std::vector<ScheduledMessage> messages;  // sorted by time, then sender's rank, then thread block
  std::vector<ScheduledStep> local;        // copies and reductions within a rank, in the same order
  std::string wrong;                       // result of prove(); empty for a correct plan
};

// Largest number of steps of a plan for which a schedule is made.
inline constexpr std::uint64_t kMostScheduledSteps = std::uint64_t{1} << 20;

// Makes the schedule. Throws InputError for a plan with more than kMostScheduledSteps steps.
PlanSchedule schedule_of(const Plan& plan);
// Throws InputError for a plan with more than kMostScheduledSteps steps. `what` names the result that was
// asked for ("a schedule").
void refuse_many_steps(const Plan& plan, const char* what);

}  // namespace netsim
