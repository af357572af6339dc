// Makes the program of a task list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload/program/program.h"
#include "sim/workload/task_list/listed_task.h"

namespace netsim {

// TaskListJob: the job that a task list describes.
struct TaskListJob {
  std::string name;
  std::uint32_t ranks = 1;
  std::uint32_t iterations = 1;
  std::uint32_t warm_up = 0;
};

// Returns the program. Ranks with the same ends of the same tasks have one role. Throws ConfigError for ranks
// that the job does not have, for a collective of one rank, and for tasks that wait for each other.
Program make_task_list_program(const TaskListJob& job, const std::vector<ListedTask>& tasks);

}  // namespace netsim
