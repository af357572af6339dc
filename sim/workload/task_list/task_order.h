// The order of a task list's tasks, and the ranks whose programs are equal.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/workload/task_list/listed_task.h"

namespace netsim {

// EqualRanks: ranks that have the same ends of the same tasks, ascending.
using EqualRanks = std::vector<RankId>;

// Returns the sets of ranks with equal programs, in the order of their first ranks. Every rank is in one.
std::vector<EqualRanks> equal_ranks(const std::vector<ListedTask>& tasks, std::uint32_t ranks);

// Returns an order of all tasks in which each is behind those that it waits for. It waits for tasks of
// `after`, and for the task written before it in the same stream and queue of a rank. Otherwise the order is
// that of the list. Ranks whose programs follow one such order cannot wait for each other in a circle.
//
// Throws ConfigError for tasks that wait for each other. A task counts as one for that, however many ranks it
// is on.
std::vector<std::uint32_t> order_tasks(const std::vector<ListedTask>& tasks,
                                       const std::vector<EqualRanks>& roles);

}  // namespace netsim
