// Returns all tasks of a rank, for sources that can list them before they run.
#pragma once

#include <vector>

#include "sim/workload/task_source.h"

namespace netsim::test {

inline std::vector<Task> tasks_of(const TaskSource& source, std::uint32_t rank) {
  std::vector<Task> tasks;
  source.for_each_task(rank, [&](const Task& task) { tasks.push_back(task); });
  return tasks;
}
inline Task task_of(const TaskSource& source, std::uint32_t rank, std::uint32_t id) {
  return tasks_of(source, rank).at(id);
}
inline std::uint32_t task_count(const TaskSource& source, std::uint32_t rank) {
  return static_cast<std::uint32_t>(tasks_of(source, rank).size());
}

}  // namespace netsim::test
