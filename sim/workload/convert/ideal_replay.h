// ideal_replay: plays a workload on a network that takes no time, without a cluster. It tells how long the
// tasks take that wait for each other: the critical path.
//
// Every computation takes its own time, and no two of them slow each other down. A collective begins when its
// last member has reached it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/core/units.h"
#include "sim/workload/task_source.h"

namespace netsim {

struct IdealReplayRules {
  // Returns the time of a work; called once for each.
  std::function<Time(const Work&)> duration;
  BitRate rate = 0;  // rate at which each rank sends its part of a communication; 0: it takes no time
};

// ReplayedPath: the longest chain of tasks that wait for each other.
struct ReplayedPath {
  // Tasks of one kind and name on the path, the longest first.
  struct Share {
    std::string kind, name;
    std::uint64_t tasks = 0;
    Time time = 0;
  };
  Time length = 0;          // end of the last task
  std::uint64_t tasks = 0;  // tasks on the path
  Time waiting = 0;         // time before earliest starts that the workload gives
  std::vector<Share> shares;
  std::uint64_t stuck = 0;  // tasks that never began, because they wait for each other
};

// Plays all tasks of the workload once. The source cannot be used for a run afterwards.
ReplayedPath replay_ideally(TaskSource& source, const IdealReplayRules& rules);

// Returns how tables name what a task does: "compute", "all_reduce", "send".
std::string kind_name(const Task& task);

}  // namespace netsim
