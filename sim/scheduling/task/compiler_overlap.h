// The scheduler of PyTorch's compiler, which orders the tasks of a rank before the run so that collectives
// are hidden by computations. The rule is that of its published code (pytorch 002965e,
// torch/_inductor/fx_passes/overlap_scheduling.py, OverlapScheduler).
//
// A collective is two nodes, its start and the wait for it. The rule takes the ready node that the earliest
// computation waits for. Among equals, nodes before a collective precede, waits for exposed collectives come
// last, and program order decides. At a computation it first hides what is in flight, in order of start. Then
// it starts collectives early that the rest of the computation can hide.
//
// Differences to the code:
// - Of its two memory bounds only that on bytes in flight acts. The other one compares with the peak of an
//   allocator, which netsim does not have.
// - Its computations are matrix products. Here they are the computations of JobProfile::in_ordinary_queue(),
//   which keep the order of the program.
// - Collectives are not put into buckets, which is also the code's default.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/units.h"
#include "sim/scheduling/task/job_profile.h"
#include "sim/scheduling/task/launch_plan.h"

namespace netsim {

// OverlapLimits: the arguments of schedule_overlap_bucketing(), with its defaults.
struct OverlapLimits {
  Bytes in_flight = 2 * kGibibyte;  // inputs and outputs of collectives between start and wait
  std::int64_t prefetch = 5;        // computations from now to the one that waits for an early collective
  std::int64_t distance = 1000;     // nodes between a computation and a collective that it may hide
  double multiplier = 1;            // share of a computation's time that hides collectives
};

// OverlapStep: one node of a rank's schedule.
struct OverlapStep {
  enum class Kind : std::uint8_t { task, start, wait };  // `start` and `wait` are those of a collective
  Kind kind = Kind::task;
  std::uint32_t task = 0;  // index in JobProfile::tasks
  bool operator==(const OverlapStep&) const = default;
};

// Returns the schedule of one iteration of a rank: all its tasks, in the order of the rule.
std::vector<OverlapStep> compiler_overlap_steps(const JobProfile& profile, RankId rank,
                                                const OverlapLimits& limits);

// Returns the schedule as a plan. The lowest rank of a group orders its collectives. A collective is held
// until the computation before its start has ended, and the waits before it. Collectives that are paused or
// in grouped calls are left out.
LaunchPlan compiler_overlap(const JobProfile& profile, const OverlapLimits& limits);

}  // namespace netsim
