// The task graph of a role's program, for TaskCensus::graph().
#pragma once

#include <functional>
#include <vector>

#include "sim/workload/program/unrolled_role.h"
#include "sim/workload/task_source.h"

namespace netsim {

// Returns the graph of the tasks of one iteration of a rank with this role. `tasks` are those tasks, in
// program order. `keeps_place` tells whether a communication without dependencies follows all earlier tasks
// of its queue (TaskStream::release_communications()).
TaskGraph role_graph(const UnrolledRole& role, std::vector<Task> tasks,
                     const std::function<bool(const Task&)>& keeps_place);

}  // namespace netsim
