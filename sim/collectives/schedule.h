// PlanSchedule: who sends what to whom when, for drawings of a plan. Time counts messages: each travels for
// one unit, and nothing else takes any. A step begins when the one before it in its thread block, the step
// that it waits for and its message are there, and where a slot is free for what it sends; so a thread block
// sends one message at a time, and a plan of n messages each of which needs the one before takes n.
//
// The steps are those of the proof's execution. A plan that is wrong has a schedule up to where that stops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/plan.h"

namespace netsim {

// A step of a thread block.
struct ScheduledStep {
  std::uint32_t time = 0;
  std::uint32_t rank = 0, block = 0, index = 0;
  Step step;
};

// What a fan carries is a message for each member. It travels from `sender.time` to the next unit.
// `receiver.rank` is kNoIndex where the schedule stops before it is received; what it is received for is in
// receiver.step.
struct ScheduledMessage {
  ScheduledStep sender, receiver;
  bool added = false;  // to others by switches on the way, or to what its receiver has
};

struct PlanSchedule {
  std::string algorithm;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t ranks = 0, chunks = 0;
  bool in_place = false;
  std::uint32_t times = 0;                 // when the last message has come
  std::vector<ScheduledMessage> messages;  // by time, then sender's rank, then thread block
  std::vector<ScheduledStep> local;        // copies and reductions within a rank, in the same order
  std::string wrong;                       // prove()'s verdict
};

// More than anybody looks at.
inline constexpr std::uint64_t kMostScheduledSteps = std::uint64_t{1} << 20;

// InputError for a plan of more steps than that.
PlanSchedule schedule_of(const Plan& plan);
// The same InputError, where `what` would be made of the plan ("a schedule").
void refuse_many_steps(const Plan& plan, const char* what);

}  // namespace netsim
