// How a task scheduler cuts the communications of a job into parts. Used by the job and by predictions.
#pragma once

#include <algorithm>
#include <memory>

#include "sim/jobs/task_scheduling.h"
#include "sim/scheduling/task/task_scheduler.h"
#include "sim/workload/task_source.h"

namespace netsim {

// Returns the facts of a communication, or of a bucket of `bytes` bytes that the task stands for.
inline CommunicationFacts facts_of(const Task& task, Bytes bytes) {
  const char* kind =
      task.kind() == TaskKind::collective ? to_string(task.collective().collective) : "message";
  return {kind, to_string(task.stream), bytes};
}

// Returns whether the scheduler chooses when the task is launched. Receives delay nothing, so they are posted
// at once. Requests for circuits, pauses and copies to hosts are not the scheduler's either.
inline bool is_chosen_by_scheduler(const Task& task) {
  return task.kind() == TaskKind::send ||
         (task.kind() == TaskKind::collective && task.collective().pause == 0);
}

// Returns whether the members of the task's group agree on its launches: the first of them decides.
inline bool is_agreed(const TaskScheduling& scheduling, const Task& task) {
  return scheduling.agreed && task.kind() == TaskKind::collective &&
         scheduling.scheduler->is_agreed(facts_of(task, task.bytes()));
}

inline AgreedLaunches agreed_launches(const std::shared_ptr<const TaskScheduling>& scheduling) {
  if (!scheduling->agreed) return {};
  return [scheduling](const Task& collective) { return is_agreed(*scheduling, collective); };
}

// Returns whether the task may run in parts. Both ends of a message must give the same answer, and one of
// them alone may be in a grouped call.
inline bool may_be_cut(const Task& task) {
  return is_point_to_point(task) ||
         (is_chosen_by_scheduler(task) && task.together == 1 && task.collective().counts == nullptr);
}

// Returns the size of the parts of a communication, which is `bytes` where it is not cut.
inline Bytes part_size(const TaskScheduler& scheduler, const Task& task, Bytes bytes) {
  const Bytes part = may_be_cut(task) ? scheduler.part_bytes(facts_of(task, bytes)) : 0;
  return part > 0 ? std::min(part, bytes) : bytes;
}

}  // namespace netsim
