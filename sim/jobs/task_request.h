// The request to the executor that a communication of a workload makes.
#pragma once

#include "sim/collectives/execution/communication.h"
#include "sim/workload/task.h"

namespace netsim {

// Returns what the task asks for: its kind, bytes and traits, and for a collective all that the call says.
// The caller adds who takes part (members, index), and the numbers that it needs itself. The task must be a
// communication.
inline CommunicationRequest request_of(const Task& task) {
  CommunicationRequest request;
  request.kind = CollectiveKind::point_to_point;
  if (task.kind() == TaskKind::collective) {
    const CollectiveTask& call = task.collective();
    request.kind = call.collective;
    request.root = call.root;
    request.counts = call.counts;
    request.grouped = call.grouped;
    request.algorithm = call.algorithm;
    request.paused_before = call.pause > 0;
  }
  request.bytes = task.bytes();
  request.raw = is_raw(task);
  request.traits = task.payload()->traits;
  request.traits.from_host = task.kind() == TaskKind::copy_from_host;
  request.name = task.name;
  return request;
}

}  // namespace netsim
