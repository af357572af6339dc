// StreamOrder: the order of the tasks in the streams of a recorded rank, from their recorded begins and
// dependencies. Clocks are coarse, so begins may contradict dependencies; then the dependencies count.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/workload/trace/trace_program.h"

namespace netsim {

// RecordedStream: the tasks of one stream, each with its recorded begin and its index in the rank's list.
using RecordedStream = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

// Sorts each stream by its begins, as far as the dependencies of the tasks (TraceTask::after) allow. If every
// task also waits for the one before it in its stream, no circle of waits is added. Returns how many tasks
// come before one of their stream that began earlier. Tasks that wait for themselves stand last.
std::uint64_t order_streams(const std::vector<TraceTask>& tasks, std::vector<RecordedStream>& streams);

}  // namespace netsim
