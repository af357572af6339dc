// ListedRank: all tasks of a rank in program order, each with the tasks that it waits for. Writers of other
// notations use it; there, nothing but such dependencies orders tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/ids.h"
#include "sim/workload/task_source.h"

namespace netsim {

struct ListedRank {
  std::vector<Task> tasks;
  // By task: the tasks that it waits for, by index, ascending. All of them come before it in program order,
  // or in an earlier iteration.
  std::vector<std::vector<std::uint32_t>> after;
};

// Lists the tasks of all iterations. The order of a stream queue becomes dependencies. A task that waits for
// a whole iteration waits for those of its tasks that no other one waits for. Throws InputError for a
// workload that decides its tasks during the run.
ListedRank list_rank(const TaskSource& source, RankId rank);

}  // namespace netsim
