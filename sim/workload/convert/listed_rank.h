// ListedRank: all tasks of a rank in program order, each with the tasks that it waits for. Writers of other
// notations use it; there, nothing but such dependencies orders tasks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/ids.h"
#include "sim/workload/task_source.h"

namespace netsim {

struct ListedRank {
  std::vector<Task> tasks;
  // By task: the tasks that it waits for, by index, ascending. All of them come before it in program order,
  // or in an earlier iteration.
  std::vector<std::vector<std::uint32_t>> after;
  // By task: those of `after` that only precede it in its stream queue, ascending. A task scheduler may let
  // the task begin before them.
  std::vector<std::vector<std::uint32_t>> queued;
  // By task: whether it is one call with an earlier task of its queue.
  std::vector<bool> joins;

  // Returns the tasks of `after` that are not `queued`.
  std::vector<std::uint32_t> dependencies(std::size_t task) const;
};

// Lists the tasks of all iterations. The order of a stream queue becomes dependencies. A task that waits for
// a whole iteration waits for those of its tasks that no other one waits for. Throws InputError where
// listing_objection() has one, and for a workload that decides its tasks during the run.
ListedRank list_rank(const TaskSource& source, RankId rank);

// Returns why no list of tasks stands for the workload, or "".
std::string listing_objection(const TaskSource& source);

}  // namespace netsim
