// The task graph of a role's program, for TaskCensus::graph().
#pragma once

#include <vector>

#include "sim/workload/program/unrolled_role.h"
#include "sim/workload/task_source.h"

namespace netsim {

// Returns the graph of the tasks of one iteration of a rank with this role. `tasks` are those tasks, in
// program order.
TaskGraph role_graph(const UnrolledRole& role, std::vector<Task> tasks);

}  // namespace netsim
